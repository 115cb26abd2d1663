"""What every store remembers, room by room: written once, run on each store in its own dialect of SQL."""
