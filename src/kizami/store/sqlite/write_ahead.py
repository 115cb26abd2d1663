"""The write-ahead log beside a SQLite file: switched on, and kept so short that a full disk needs little to recover.

What is committed stands in the log until a checkpoint moves it into the file, which takes room in the file before it
gives any back. SQLite lets the log grow to 4 MB and never shrinks it: on a small disk the log itself fills the disk,
and freeing less than that doesn't help.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 4_194_304
"""The log is moved into the file when it has this size, and cut back to it; it is longer only by one transaction."""

_PAGE_BYTES: Final = 4_096
_LOG_BYTES_MIN: Final = 16 * _PAGE_BYTES
_SHARE_OF_ROOM: Final = 8
_SWITCHES_MAX: Final = 20


def write_ahead(connection: sqlite3.Connection, path: str) -> None:
    """Switch to WAL with a short log, shorter still on a disk that has little room. Raises sqlite3.Error."""
    _switch(connection)
    most = max(_LOG_BYTES_MIN, min(LOG_BYTES, _room(path) // _SHARE_OF_ROOM))
    connection.execute(f"PRAGMA wal_autocheckpoint = {most // _PAGE_BYTES}")
    connection.execute(f"PRAGMA journal_size_limit = {most}")


def empty_log(connection: sqlite3.Connection) -> None:
    """Move the log into the file and give its room back, if nobody reads it now and the disk allows; never waits."""
    busy_ms = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {busy_ms}")


def _room(path: str) -> int:
    """Return how many bytes the disk has left."""
    try:
        return shutil.disk_usage(Path(path).parent).free
    except OSError:
        return LOG_BYTES


def has_no_room(path: str) -> bool:
    """Tell whether the disk is full: SQLite says so of its file and its log, but not of the log's index."""
    return _room(path) < _LOG_BYTES_MIN


def _switch(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite doesn't wait for others that switch a new file at the same moment, so we do."""
    for _ in range(_SWITCHES_MAX):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN EXCLUSIVE")  # this does wait, up to busy_ms
            connection.execute("COMMIT")
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")
