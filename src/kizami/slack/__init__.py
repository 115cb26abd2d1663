"""The Slack mirror: ordinary code on top of the app."""
