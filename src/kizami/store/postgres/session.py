"""One connection and the transactions on it, made anew when it was lost.

Time limits are set in each transaction, by the statement that also asks for the database's time: a pooler may hand
every transaction to another connection. Only where none stands between are they set for the session too, for statements
that are a transaction by themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg

from kizami.core.errors import StoreUnclearError
from kizami.core.storable import require_storable
from kizami.store.looks import LOOK_MS, too_slow
from kizami.store.postgres.connection import Connection, connect, is_behind_pooler, is_lost
from kizami.store.postgres.faults import is_ended, may_repeat, needs_new_connection, translate
from kizami.store.postgres.transaction import DIALECT, Foreseen, PostgresTransaction, call_of
from kizami.store.transaction import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kizami.store.postgres.connection import Row
    from kizami.store.postgres.place import Place
    from kizami.store.statements import Statement
    from kizami.store.transaction import Transaction

T = TypeVar("T")
TRIES_MAX: Final = 3
_ASKS_MAX: Final = 20
_STATEMENT_MS: Final = 30_000
_LIMITS: Final = """
SELECT set_config('lock_timeout', '10s', {local}), set_config('statement_timeout', '{limit_ms}ms', {local}),
  set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), {local})
"""
_ALONG_INDEXES: Final = """,
  set_config('enable_seqscan', 'off', {local}), set_config('enable_bitmapscan', 'off', {local}),
  set_config('enable_hashjoin', 'off', {local}), set_config('enable_mergejoin', 'off', {local})
"""
"""A plan is kept for long, and many are made while the tables are empty: the engine's must not depend on that."""

_OPENING: Final = _LIMITS.replace("{local}", "true") + ", kizami_now() AS now, {transaction_id} AS transaction_id"
_OPENING_OF_THE_ENGINE: Final = _OPENING + _ALONG_INDEXES.replace("{local}", "true")
_STATUS: Final = """
SELECT pg_xact_status(%s::xid8) AS status, pg_sleep(0.1),
  extract(epoch FROM pg_postmaster_start_time())::text = %s AS same_life
"""
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


_IDENTITY: Final = "pg_current_xact_id()::text || ' ' || extract(epoch FROM pg_postmaster_start_time())"
"""A transaction, and the life of the server in which it was: one that crashes may give the number again."""


class Errand(Enum):
    """What a transaction is for: the statement that begins it, and the one that opens it."""

    WRITE = (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        _OPENING_OF_THE_ENGINE.format(transaction_id=_IDENTITY, limit_ms=_STATEMENT_MS),
    )
    READ = (_SNAPSHOT, _OPENING_OF_THE_ENGINE.format(transaction_id="NULL", limit_ms=_STATEMENT_MS))
    LOOK = (_SNAPSHOT, _OPENING.format(transaction_id="NULL", limit_ms=LOOK_MS))


class StatementLostError(Exception):
    """The connection was lost while a statement ran that is a transaction by itself: it may have been kept."""


class Session:
    """A connection that heals itself; one thread uses it at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection: Connection | None = None
        self._limited: Connection | None = None

    def run(
        self,
        operation: Callable[[Transaction, Moment], T],
        errand: Errand,
        foreseen: Sequence[tuple[Statement, Mapping[str, Any]]] = (),
    ) -> T:
        """Run an operation in a transaction, again where that is sure to be harmless.

        `foreseen`, the statements that it begins with, are sent on the way of the first one.

        A transaction whose connection is lost before its commit was sent has changed nothing; of one that is lost
        during the commit, the database is asked what became of it. Raises StoreError, and what the operation raises.
        """
        for tries in range(1, TRIES_MAX + 1):
            connection = self._connection = self._connection or connect(self._place)
            try:
                moment, transaction_id, answers = _begin(connection, errand, foreseen)
                transaction = PostgresTransaction(connection, moment, answers)
                value = operation(transaction, moment)
                if self._commit(transaction, transaction_id):
                    return value
            except psycopg.Error as error:
                again = self._recover(connection, error)
                if errand is Errand.LOOK and is_ended(error):
                    raise too_slow(self._place.shown) from error
                if not again or tries == TRIES_MAX:
                    raise translate(error, self._place) from error
            except BaseException:
                self._roll_back(connection)
                raise
        raise StoreUnclearError(
            f"The connection to the database {self._place.shown} was lost again and again in the middle of a commit.",
            remedy="See the server's log; Kizami tries again by itself.",
        )

    def run_alone(self, statement: Statement, facts: Mapping[str, Any]) -> list[Row]:
        """Run one statement in a transaction of its own; return nothing where only a longer one is safe.

        That is behind a pooler, where time limits can't be left in the session, and when the server took it back.
        Raises StatementLostError, StoreError, InvalidInputError.
        """
        require_storable(facts)
        connection = self._connection = self._connection or connect(self._place)
        if is_behind_pooler(connection):
            return []
        try:
            self._limit(connection)
            return connection.execute(DIALECT[statement], facts).fetchall()
        except psycopg.Error as error:
            if is_lost(connection) or needs_new_connection(error):
                self.close()
                raise StatementLostError from error
            if may_repeat(error):
                return []
            raise translate(error, self._place) from error

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _limit(self, connection: Connection) -> None:
        """Set the time limits of statements that run alone, once for each connection."""
        if self._limited is not connection:
            connection.execute((_LIMITS + _ALONG_INDEXES).format(limit_ms=_STATEMENT_MS, local="false"), prepare=False)
            self._limited = connection

    def _commit(self, transaction: PostgresTransaction, transaction_id: str | None) -> bool:
        """Commit; False when the connection was lost and the transaction turned out to be taken back."""
        try:
            transaction.commit()
        except psycopg.OperationalError as error:
            if not is_lost(transaction.connection) or transaction_id is None:
                raise
            self.close()
            return self._has_committed(transaction_id, error)
        return True

    def _has_committed(self, transaction_id: str, error: psycopg.Error) -> bool:
        """Ask the database what became of a transaction whose end wasn't heard. Raises StoreUnclearError."""
        try:
            self._connection = connect(self._place)
            for _ in range(_ASKS_MAX):
                status = _status(self._connection, transaction_id)
                if status in ("committed", "aborted"):
                    return status == "committed"
        except Exception as later:
            raise self._unclear() from later
        raise self._unclear() from error

    def _unclear(self) -> StoreUnclearError:
        return StoreUnclearError(
            f"The connection to the database {self._place.shown} was lost in the middle of a commit, and whether it was"
            " kept can't be asked.",
            remedy="Nothing has to be done: Kizami repeats what can be repeated.",
            place=self._place.shown,
        )

    def _recover(self, connection: Connection, error: psycopg.Error) -> bool:
        """Make the session usable again; tell whether the operation may run once more."""
        if is_lost(connection) or needs_new_connection(error):
            self.close()
            return True
        self._roll_back(connection)
        return may_repeat(error)

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self.close()


def _begin(
    connection: Connection, errand: Errand, foreseen: Sequence[tuple[Statement, Mapping[str, Any]]]
) -> tuple[Moment, str | None, Foreseen]:
    begin, opening = errand.value
    with connection.pipeline():
        connection.execute(begin, prepare=False)
        opened = connection.execute(opening)
        answers = {
            call_of(statement, facts): connection.execute(DIALECT[statement], facts) for statement, facts in foreseen
        }
    row: Any = opened.fetchone()
    return Moment(row["now"], row["now"], ""), row["transaction_id"], answers


def _status(connection: Connection, transaction_id: str) -> str | None:
    """Return committed, aborted, in progress (for a fifth of a second at most, then it is asked again) or None.

    None also where the server has started anew and has such a number committed: it may be another transaction's.
    """
    number, _, life = transaction_id.partition(" ")
    row: Any = connection.execute(_STATUS, (number, life), prepare=False).fetchone()
    status: str | None = row["status"]
    return None if status == "committed" and not row["same_life"] else status
