"""Loops that carry out what core decides: fire, dispatch, execute, report, reap."""
