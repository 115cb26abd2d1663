"""REST API and dashboard."""
