"""The routes of the API and of the dashboard, by what they are about."""
