"""The testing kit for users: a virtual clock, a seeded world, window assertions."""
