"""The demo: real uptime checks replayed, mirrored into the sandbox, with a worker that may be killed at any moment."""
