"""Working in the transaction of a caller's own SQLite connection, whatever its settings."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import StoreBusyError, StoreVersionError
from kizami.core.storable import require_storable
from kizami.store.callers import RELEASE, ROLL_BACK, SAVEPOINT, no_transaction, other_database, unknown_kind
from kizami.store.sqlite.connection import translate
from kizami.store.sqlite.migrate import missing
from kizami.store.sqlite.transaction import DIALECT, SqliteTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kizami.store.statements import Statement
    from kizami.store.transaction import Moment

_WANTED: Final = "a sqlite3.Connection, or a Connection or Session of SQLAlchemy over one,"


class JoinedTransaction(SqliteTransaction):
    """The transaction that a caller's connection is in; its rows are ours, whatever the caller's are."""

    __slots__ = ()

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> sqlite3.Cursor:
        """Run a named statement. Raises InvalidInputError and sqlite3.Error."""
        require_storable(facts)
        return _cursor(self.connection).execute(DIALECT.text(statement, pieces), {**self._time, **facts})

    def execute_late(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Run a statement for each row, at once. Raises sqlite3.Error."""
        self.execute_many(statement, rows)

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a statement for each row. Raises sqlite3.Error."""
        return _cursor(self.connection).executemany(DIALECT[statement], rows).rowcount


@contextmanager
def joined(connection: object, path: str, moment: Moment) -> Iterator[JoinedTransaction]:
    """Give the transaction of a caller's connection; what fails in it is taken back alone.

    Begins one where the next statement would have. Raises OtherDatabaseError, WrongStateError, StoreError.
    """
    if not isinstance(connection, sqlite3.Connection):
        raise unknown_kind(connection, path, _WANTED)
    try:
        texts, connection.text_factory = connection.text_factory, str
        try:
            _require_same(connection, path)
            with _in_transaction(connection, path), _savepoint(connection):
                _require_current(connection, path)
                yield JoinedTransaction(connection, moment)
        finally:
            connection.text_factory = texts
    except sqlite3.Error as error:
        raise _translated(error, path) from error


@contextmanager
def _in_transaction(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    if _has_begun(connection):
        yield
        return
    level = connection.isolation_level
    if level is None or getattr(connection, "autocommit", None) is True:
        raise no_transaction(path)
    # Its owner's next writing statement would begin one. We write, so there is no reason to begin as a reader.
    _run(connection, "BEGIN EXCLUSIVE" if level.upper() == "EXCLUSIVE" else "BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if _has_begun(connection):
            _run(connection, "ROLLBACK")
        raise


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    _run(connection, SAVEPOINT)
    try:
        yield
    except BaseException:
        if _has_begun(connection):  # a full disk, for one, ends the whole transaction
            _run(connection, ROLL_BACK)
            _run(connection, RELEASE)
        raise
    _run(connection, RELEASE)


def _require_same(connection: sqlite3.Connection, path: str) -> None:
    """Raise OtherDatabaseError unless the connection's main file is this one, by whatever name."""
    theirs = next((row["file"] for row in _run(connection, "PRAGMA database_list") if row["name"] == "main"), "")
    try:
        if theirs and os.path.samestat(os.stat(theirs), os.stat(path)):  # noqa: PTH116 - it may be a link
            return
    except OSError:  # one of them isn't there: then they aren't the same
        pass
    remedy = "Connect to that file (attached ones don't count), or leave connection out."
    raise other_database(path, theirs or "a database in memory", remedy)


def _require_current(connection: sqlite3.Connection, path: str) -> None:
    rows, connection.row_factory = connection.row_factory, sqlite3.Row
    try:
        lacking = missing(connection)
    finally:
        connection.row_factory = rows
    if lacking:
        names = ", ".join(f"{migration.number} ({migration.name})" for migration in lacking)
        raise StoreVersionError(
            f"The database {path} lacks the migration {names}.", remedy="Run `kizami migrate`.", path=path
        )


def _translated(error: sqlite3.Error, path: str) -> Exception:
    found = translate(error, path)
    if isinstance(found, StoreBusyError):
        return StoreBusyError(
            found.message,
            remedy="Roll back and repeat the transaction; begun with BEGIN IMMEDIATE, it waits for others before it"
            " reads, for as long as the connection's timeout.",
            path=path,
        )
    return found


def _has_begun(connection: sqlite3.Connection) -> bool:
    return connection.in_transaction


def _run(connection: sqlite3.Connection, text: str) -> sqlite3.Cursor:
    return _cursor(connection).execute(text)


def _cursor(connection: sqlite3.Connection) -> sqlite3.Cursor:
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = sqlite3.Row
    return cursor
