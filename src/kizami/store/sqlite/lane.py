"""A lane: a connection to the file and the thread that alone uses it, which nothing but `stop` ends.

What waits while a transaction is in progress joins the next one, in a savepoint each, so that an operation that fails
takes back only itself. Whoever handed an operation in is answered, whatever breaks.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from kizami.core.errors import StoreError
from kizami.store.looks import LOOK_MS, too_slow
from kizami.store.ownership import CLOSED_REMEDY
from kizami.store.sqlite.connection import MEMORY, commit, is_full, is_interrupted, needs_new_connection, translate
from kizami.store.sqlite.transaction import SqliteTransaction
from kizami.store.sqlite.write_ahead import empty_log

if TYPE_CHECKING:
    from kizami.store.transaction import Moment, Write

T = TypeVar("T")
log = logging.getLogger("kizami.store")
BATCH_MAX: Final = 512
REST_SECONDS: Final = 1.0
"""A writer that had nothing to do for so long is at rest."""

_STEPS_PER_GLANCE: Final = 100_000
"""Steps of SQLite's machine, a few milliseconds of them, after which a look is asked whether its time is over."""


class Home(Protocol):
    """What a lane needs of its database."""

    path: str

    def connect(self, *, read_only: bool) -> sqlite3.Connection:
        """Return a new connection to the file."""
        ...

    def moment(self) -> Moment:
        """Return the store's time now."""
        ...


class _Call(NamedTuple):
    operation: Write[Any]
    future: Future[Any]
    asked_boot: int


_Answer = tuple[Any, BaseException | None]


class Lane:
    """A connection and its thread; with `is_for_looks` an operation is ended when its time is over."""

    def __init__(self, home: Home, name: str, *, read_only: bool, is_for_looks: bool = False) -> None:
        self._home = home
        self._name = name
        self._read_only = read_only
        self._is_for_looks = is_for_looks
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._open = False
        self._door = threading.Lock()
        self._log_grew = False
        self._ends_boot = 0

    def start(self, connection: sqlite3.Connection | None, *, threaded: bool) -> None:
        """Begin to serve, on a thread or on those of the callers."""
        self._connection = connection
        self._open = True
        if threaded:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Finish what waits, then disconnect."""
        with self._door:  # nothing comes in behind the end mark, where nobody would answer it
            if not self._open:
                return
            self._open = False
            self._calls.put(None)
        if self._thread is not None:
            self._thread.join()
        self._disconnect()

    async def run(self, operation: Write[T]) -> T:
        """Run an operation and wait for its end, which a caller that is cancelled doesn't change. Raises StoreError."""
        future = self.submit(operation)
        if future.done():
            return future.result()
        return await asyncio.shield(asyncio.wrap_future(future))

    def submit(self, operation: Write[T]) -> Future[T]:
        """Hand an operation in; its answer comes with the future."""
        call = _Call(operation, Future(), self._home.moment().boot if self._is_for_looks else 0)
        with self._door:
            if not self._open:
                call.future.set_exception(
                    StoreError(f"The database {self._home.path} is closed.", remedy=CLOSED_REMEDY)
                )
                return call.future
            if self._thread is not None:
                self._calls.put(call)
                return call.future
        self._run_batch([call])
        return call.future

    def _serve(self) -> None:
        goes_on = True
        while goes_on:
            batch: list[_Call] = []
            try:
                goes_on = self._gather(batch)
                self._run_batch([call for call in batch if call.future.set_running_or_notify_cancel()])
            except BaseException as error:  # noqa: BLE001 - a thread that ended would leave all later callers waiting
                self._break(batch, error)

    def _gather(self, batch: list[_Call]) -> bool:
        """Wait for calls and put them into the batch; False when they are the last."""
        call = self._next()
        while call is not None:
            batch.append(call)
            if len(batch) == BATCH_MAX:
                return True
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return True
        return False

    def _next(self) -> _Call | None:
        """Return the next call, or None at the end. A writer uses its first moment of rest to empty the log."""
        if self._log_grew:
            try:
                return self._calls.get(timeout=REST_SECONDS)
            except queue.Empty:
                self._log_grew = False
                if self._connection is not None:
                    empty_log(self._connection)
        return self._calls.get()

    def _break(self, batch: list[_Call], error: BaseException) -> None:
        """Answer all of a batch that broke, and go on with a new connection."""
        log.error("the thread %s broke and goes on", self._name, exc_info=error)
        self._disconnect()
        for call in batch:
            if not call.future.done():
                broke = StoreError(
                    f"The thread {self._name} of the database {self._home.path} broke: {error!r}.",
                    remedy="Try again; if it stays so, report this line and the log's traceback.",
                    path=self._home.path,
                )
                broke.__cause__ = error
                call.future.set_exception(broke)

    def _run_batch(self, batch: list[_Call]) -> None:
        if not batch:
            return
        self._log_grew = not self._read_only
        try:
            answers = self._transact(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, all of the batch must hear of it
            self._recover(error)
            told = translate(error, self._home.path) if isinstance(error, sqlite3.Error) else error
            answers = [(None, told)] * len(batch)
        for call, (value, failure) in zip(batch, answers, strict=True):
            if failure is None:
                call.future.set_result(value)
            else:
                call.future.set_exception(failure)

    def _transact(self, batch: list[_Call]) -> list[_Answer]:
        if self._connection is None:
            self._connection = self._home.connect(read_only=self._read_only)
        connection = self._connection
        if self._is_for_looks:
            connection.set_progress_handler(self._is_over, _STEPS_PER_GLANCE)
        connection.execute(self._begin)
        moment = self._home.moment()
        transaction = SqliteTransaction(connection, moment)
        answers = [self._run_one(transaction, moment, call) for call in batch]
        self._ends_boot = 0
        commit(connection, self._home.path)
        return answers

    def _run_one(self, transaction: SqliteTransaction, moment: Moment, call: _Call) -> _Answer:
        if self._is_for_looks:
            self._ends_boot = call.asked_boot + LOOK_MS
            if self._is_over():
                return None, too_slow(self._home.path)
        connection = transaction.connection
        connection.execute("SAVEPOINT operation")
        try:
            value = call.operation(transaction, moment)
        except Exception as error:  # whatever it is, it is the caller's answer, and the others go on
            self._ends_boot = 0
            if not connection.in_transaction:
                raise  # SQLite took the whole transaction back (disk full, IO error): all fail
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
            return None, _told(error, self._home.path)
        self._ends_boot = 0
        connection.execute("RELEASE operation")
        return value, None

    def _is_over(self) -> bool:
        return 0 < self._ends_boot < self._home.moment().boot

    def _recover(self, error: Exception) -> None:
        self._ends_boot = 0
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()
            return
        if is_full(error):
            empty_log(connection)
        if needs_new_connection(error) and self._home.path != MEMORY:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _told(error: Exception, path: str) -> Exception:
    """Return what the caller hears: a value that SQLite refuses is a bug and stays itself, all else befell the file."""
    if is_interrupted(error):
        return too_slow(path)
    if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
        return translate(error, path)
    return error
