"""The REST API and the dashboard: one ASGI app that answers nobody until it knows whom to trust."""
