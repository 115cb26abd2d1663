"""Kizami: jobs on a clock, durable, each tick once, mirrored into Slack."""
