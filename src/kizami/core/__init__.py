"""Pure decisions: no IO, no clock, no randomness, no imports from the floors above."""
