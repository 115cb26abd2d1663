"""The public object: definitions, their validation, and the wiring of the engine."""
