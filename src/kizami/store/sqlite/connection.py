"""Opening a SQLite file the durable way, and saying in our own errors what went wrong with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from kizami.core.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)

MEMORY: Final = ":memory:"
OLDEST_SQLITE: Final = (3, 37, 0)
"""STRICT tables need 3.37; UPDATE ... RETURNING needs 3.35."""

_SWITCHES_MAX: Final = 20
_RECONNECT: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def connect(path: str, *, busy_ms: int, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection in WAL mode with synchronous=FULL; what is committed survives power loss.

    Raises StoreError and its kinds.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise StoreVersionError(
            f"SQLite {sqlite3.sqlite_version} is too old.",
            remedy=f"Use a Python built with SQLite {wanted} or newer.",
        )
    try:
        connection = sqlite3.connect(
            path,
            timeout=busy_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        connection.row_factory = sqlite3.Row
        if path != MEMORY:
            _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite doesn't wait for others that switch a new file at the same moment, so we do."""
    for _ in range(_SWITCHES_MAX):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _primary_code(error) != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN EXCLUSIVE")  # this does wait, up to busy_ms
            connection.execute("COMMIT")
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def needs_new_connection(error: BaseException) -> bool:
    """Tell whether a connection can't be trusted after this error."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) in _RECONNECT


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """Return our own error for one of SQLite's: what happened to which file, and what to do."""
    code = _primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(
            f"The database {path} is locked by another process.",
            remedy="End what keeps a transaction open on it (a shell, a backup); Kizami tries again by itself.",
            path=path,
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(
            f"The disk under the database {path} is full.",
            remedy="Free some space; nothing was half written, and Kizami goes on by itself.",
            path=path,
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return _read_only(path)
    if code == sqlite3.SQLITE_CANTOPEN:
        return _cannot_open(path)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(
            f"{path} is not a SQLite database.",
            remedy="Point KIZAMI_DATABASE_URL at another file.",
            path=path,
        )
    return StoreError(f"The database {path} failed: {error}.", remedy="See the database's own message.", path=path)


def _read_only(path: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(
        f"The database {path} can't be written.",
        remedy="Make the file and its folder writable (SQLite keeps two files beside it), or choose another path.",
        path=path,
    )


def _cannot_open(path: str) -> StoreError:
    folder = Path(path).parent
    if not folder.is_dir():
        return StoreError(
            f"The folder {folder} does not exist.", remedy="Create it, or change KIZAMI_DATABASE_URL.", path=path
        )
    if Path(path).is_dir():
        return StoreError(f"{path} is a folder.", remedy="Name a file in KIZAMI_DATABASE_URL.", path=path)
    return _read_only(path)


def _primary_code(error: sqlite3.Error) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1
