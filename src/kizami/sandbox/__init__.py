"""A local stand-in for Slack: the same methods, limits, errors and faults."""
