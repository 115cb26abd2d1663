"""The store on one SQLite file: several processes on one machine."""
