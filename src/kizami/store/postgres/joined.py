"""Working in the transaction of a caller's own psycopg connection, whatever its row factory, types and cursors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from kizami.core.errors import OtherDatabaseError, StoreBusyError, WrongStateError
from kizami.core.storable import require_storable
from kizami.store.callers import RELEASE, ROLL_BACK, SAVEPOINT, no_transaction, other_database
from kizami.store.postgres.connection import connect
from kizami.store.postgres.faults import translate
from kizami.store.postgres.listener import CHANNEL
from kizami.store.postgres.migrate import require_current
from kizami.store.postgres.transaction import DIALECT, columns
from kizami.store.protocol import Topic
from kizami.store.transaction import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kizami.store.postgres.callers import AsyncCaller, Fetched, SyncCaller
    from kizami.store.postgres.place import Place
    from kizami.store.statements import Statement

_WHO: Final = """
SELECT kizami_now() AS now, (SELECT database_id FROM kizami_identity) AS database_id, current_database() AS database,
  (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database_number,
  'kizami_jobs'::regclass::oid::bigint AS jobs_number, (SELECT system_identifier FROM pg_control_system()) AS server
"""
_UNKNOWN: Final = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName)


class Identity(NamedTuple):
    """What tells one database with Kizami's tables from another, a copy of it included, by whatever address."""

    database_id: str
    server: int
    database_number: int
    jobs_number: int


def home_of(place: Place) -> Identity:
    """Return who the app's database is. Raises StoreError and its kinds, for a schema that isn't current too."""
    require_current(place)
    connection = connect(place)
    try:
        row: Any = connection.execute(_WHO, prepare=False).fetchone()
    except psycopg.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()
    return _identity(row)


class JoinedTransaction:
    """The transaction that a caller's connection is in; its rows are ours, whatever the caller's are."""

    __slots__ = ("_caller", "_time")

    def __init__(self, caller: SyncCaller | AsyncCaller, moment: Moment) -> None:
        self._caller = caller
        self._time = {"now": moment.now}

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> Fetched:
        """Run a named statement. Raises InvalidInputError and psycopg.Error."""
        require_storable(facts)
        return self._caller.run(DIALECT.text(statement, pieces), {**self._time, **facts})

    def tuples(self, statement: Statement, facts: Mapping[str, Any], /) -> Fetched:
        """Run a named statement. Raises as `execute` does."""
        return self.execute(statement, facts)

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a statement once for all rows: it unnests their columns. Raises psycopg.Error."""
        return self._caller.run(DIALECT[statement], self._time | columns(rows)).rowcount if rows else 0

    def execute_late(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Run a statement once for all rows, at once: the commit isn't ours. Raises psycopg.Error."""
        self.execute_many(statement, rows)


@contextmanager
def joined(
    caller: SyncCaller | AsyncCaller, place: Place, is_home: Callable[[Identity], bool]
) -> Iterator[tuple[JoinedTransaction, Moment]]:
    """Give the transaction of a caller's connection; what fails in it is taken back alone.

    With the caller's commit, workers are notified. Raises OtherDatabaseError, WrongStateError, StoreError.
    """
    _require_transaction(caller, place)
    try:
        with _savepoint(caller):
            now = _require_same(caller, place, is_home)
            moment = Moment(now, now, "")
            yield JoinedTransaction(caller, moment), moment
            caller.run(f"NOTIFY {CHANNEL}, '{Topic.JOBS}'")
    except psycopg.Error as error:
        raise _translated(error, place) from error


def _require_transaction(caller: SyncCaller | AsyncCaller, place: Place) -> None:
    info = caller.connection.info
    status = info.transaction_status
    if status is TransactionStatus.INERROR:
        raise WrongStateError(
            f"The connection's transaction on {place.shown} has failed already.",
            remedy="Roll it back, and begin again.",
        )
    if caller.connection.closed or status is TransactionStatus.UNKNOWN:
        raise WrongStateError(f"The connection to {place.shown} is closed.", remedy="Give one that is open.")
    if caller.connection.autocommit and status is TransactionStatus.IDLE:
        raise no_transaction(place.shown)
    if info.encoding != "utf-8":
        raise WrongStateError(
            f"The connection's client encoding is {info.encoding}, which can't carry every payload.",
            remedy="Set client_encoding to UTF8.",
        )


@contextmanager
def _savepoint(caller: SyncCaller | AsyncCaller) -> Iterator[None]:
    caller.run(SAVEPOINT)
    try:
        yield
    except BaseException:
        if not caller.connection.closed:
            caller.run_whatever_happened(ROLL_BACK)
            caller.run_whatever_happened(RELEASE)
        raise
    caller.run(RELEASE)


def _require_same(caller: SyncCaller | AsyncCaller, place: Place, is_home: Callable[[Identity], bool]) -> int:
    """Return the database's time. Raises OtherDatabaseError."""
    try:
        row = caller.run(_WHO).fetchone()
    except _UNKNOWN as error:
        raise _elsewhere(caller, place, ", where no tables of Kizami are on its search_path") from error
    if not is_home(_identity(row)):
        raise _elsewhere(caller, place, ", or in another schema of it")
    return int(row["now"])


def _elsewhere(caller: SyncCaller | AsyncCaller, place: Place, more: str) -> OtherDatabaseError:
    info = caller.connection.info
    remedy = "Connect to that database with the same search_path, or leave connection out."
    return other_database(place.shown, f"{info.dbname} on {info.host or 'localhost'}:{info.port}{more}", remedy)


def _identity(row: Any) -> Identity:
    return Identity(row["database_id"], row["server"], row["database_number"], row["jobs_number"])


def _translated(error: psycopg.Error, place: Place) -> Exception:
    found = translate(error, place)
    if isinstance(found, StoreBusyError):
        return StoreBusyError(
            found.message, remedy="Nothing was enqueued: roll back and repeat the transaction.", place=place.shown
        )
    return found
