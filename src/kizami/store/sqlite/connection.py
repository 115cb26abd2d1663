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
    StoreUnclearError,
    StoreVersionError,
)
from kizami.store.sqlite.write_ahead import LOG_BYTES, has_no_room, write_ahead

MEMORY: Final = ":memory:"
OLDEST_SQLITE: Final = (3, 37, 0)
"""STRICT tables need 3.37; UPDATE ... RETURNING needs 3.35."""

_SHOWN_MAX: Final = 200
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FILE_TROUBLE: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_REMEDIES: Final = {
    sqlite3.SQLITE_CORRUPT: "Restore it from a backup; `sqlite3 FILE .recover` may save what is readable.",
    sqlite3.SQLITE_NOMEM: "Give the process more memory.",
    sqlite3.SQLITE_TOOBIG: "Store less in one job: payloads and results of megabytes belong elsewhere.",
}
_OF_OTHER_TABLES: Final = ("no such table", "no such column", "has no column", "already exists")
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
            write_ahead(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return connection


def needs_new_connection(error: BaseException) -> bool:
    """Tell whether a connection can't be trusted after this error."""
    cause = error.__cause__ if isinstance(error, StoreUnclearError) else error
    return isinstance(cause, sqlite3.Error) and _primary_code(cause) in _RECONNECT


def is_full(error: BaseException) -> bool:
    """Tell whether the disk had no room left."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) == sqlite3.SQLITE_FULL


def is_interrupted(error: BaseException) -> bool:
    """Tell whether a statement was ended because its time was over."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) == sqlite3.SQLITE_INTERRUPT


def commit(connection: sqlite3.Connection, path: str) -> None:
    """Commit. Raises sqlite3.Error when nothing was kept, StoreUnclearError when that can't be told.

    The commit stands in the log before it is synced and made visible: a disk that fails there leaves a transaction that
    nobody sees now, but that a crash before the next write would bring back.
    """
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if _primary_code(error) != sqlite3.SQLITE_IOERR:
            raise
        raise StoreUnclearError(
            f"The disk failed in the middle of a commit to the database {path}: {error}.",
            remedy="Check the disk and its file system. What was being written may have been kept: look before you "
            "repeat it, or enqueue with a unique_key, which makes a repetition harmless.",
            path=path,
        ) from error


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """Return our own error for one of SQLite's: what happened to which file, and what to do."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_FULL or (code in _FILE_TROUBLE and has_no_room(path)):
        return StoreFullError(
            f"The disk under the database {path} is full.",
            remedy=f"Free at least {LOG_BYTES // 1_048_576} MiB there, which SQLite needs to move its log into the "
            "file; nothing was half written, and a running worker goes on by itself.",
            path=path,
        )
    if code in _FILE_TROUBLE:
        return _cannot_use(error, path)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return _read_only(path)
    if code in _BUSY:
        return StoreBusyError(
            f"The database {path} is locked by another process.",
            remedy="End what keeps a transaction open on it (a shell, a backup) and try again; a running worker does "
            "so by itself.",
            path=path,
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(
            f"{path} is not a SQLite database.", remedy="Name another file in the database URL.", path=path
        )
    remedy = _REMEDIES.get(code, "Try again; if it stays so, report this line.")
    if code == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _OF_OTHER_TABLES):
        remedy = "Its tables are not those that Kizami made: name a file of Kizami's own in the database URL."
    return StoreError(f"The database {path} failed: {error}.", remedy=remedy, path=path)


def _read_only(path: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(
        f"The database {path} can't be written.",
        remedy="Make the file and its folder writable (SQLite keeps two files beside it), or choose another path.",
        path=path,
    )


def _cannot_use(error: sqlite3.Error, path: str) -> StoreError:
    """Look why a file can't be opened, read or written; SQLite itself doesn't say."""
    file = Path(path)
    try:
        if file.is_dir():
            return StoreError(f"{path} is a folder.", remedy="Name a file in the database URL.", path=path)
        if file.exists() and not file.is_file():
            return StoreError(f"{path} is not a regular file.", remedy="Name another in the database URL.", path=path)
        if not file.parent.is_dir():
            return StoreError(
                f"The folder {file.parent} does not exist.", remedy="Create it, or change the database URL.", path=path
            )
    except OSError as trouble:
        shown = path if len(path) <= _SHOWN_MAX else f"{path[:_SHOWN_MAX]}..."
        return StoreError(
            f"The database {shown} can't be opened: {trouble.strerror}.", remedy="Change the database URL.", path=path
        )
    if _primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        return _read_only(path)
    return StoreError(
        f"The database {path} can't be read or written: {error}.",
        remedy="Check the disk and its file system; SQLite needs a local one.",
        path=path,
    )


def _primary_code(error: sqlite3.Error) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1
