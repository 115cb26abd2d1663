"""One SQLite file: a writer thread with group commit and a reader thread, both awaited from the event loop.

Every write operation that waits while a commit is in progress joins the next one: a transaction for all of them, a
savepoint for each, so that an operation that fails takes back only itself. What has been answered has been committed.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kizami.core.errors import StoreError
from kizami.store.sqlite.connection import MEMORY, connect, is_full, needs_new_connection, translate
from kizami.store.sqlite.migrate import migrate
from kizami.store.sqlite.transaction import SqliteTransaction
from kizami.store.sqlite.write_ahead import empty_log
from kizami.store.statements import load
from kizami.store.transaction import Foresight, Joint, Moment, Read, Transaction, Write

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.runtime import Clock

T = TypeVar("T")
Item = TypeVar("Item")
Answered = TypeVar("Answered")
BATCH_MAX: Final = 512
_SQL: Final = load("database")
REST_SECONDS: Final = 1.0
"""A writer that had nothing to do for so long is at rest."""


_Call = tuple[Callable[[Transaction, Moment], Any], "Future[Any]"]


class Database:
    """The file and its two threads. `inline` runs everything on the caller's thread (for simulated time)."""

    def __init__(self, path: str, clock: Clock, boot_id: str, *, busy_ms: int = 5_000, inline: bool = False) -> None:
        self.path = path
        self.clock = clock
        self._boot_id = boot_id
        self._busy_ms = busy_ms
        self._inline = inline or path == MEMORY
        self._wakes: dict[object, Callable[[], None]] = {}
        self._writer = _Lane(self, "kizami-writer", read_only=False)
        self._reader = self._writer if self._inline else _Lane(self, "kizami-reader", read_only=True)

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` on the event loop after a change that somebody may wait for; return what ends that."""
        token = object()
        self._wakes[token] = wake

        def forget() -> None:
            self._wakes.pop(token, None)

        return forget

    def announce(self) -> None:
        """Tell those who wait in this process that there is something to look at."""
        for wake in tuple(self._wakes.values()):
            wake()

    async def data_version(self) -> int:
        """Return a number that changes whenever anybody else's commit changed the file."""
        return await self.read(lambda transaction, _: int(transaction.execute(_SQL["data_version"], {}).fetchone()[0]))

    def log_written(self) -> tuple[int, int] | None:
        """Return when the write-ahead log was last written to and its size; None when there is none."""
        try:
            log = os.stat(f"{self.path}-wal")  # noqa: PTH116 - four times a second, and Path is slower than the call
        except OSError:
            return None
        return log.st_mtime_ns, log.st_size

    @property
    def is_inline(self) -> bool:
        """Tell whether operations run on the caller's thread."""
        return self._inline

    def moment(self) -> Moment:
        """Return the store's time now."""
        return Moment(self.clock.now_ms(), self.clock.boot_ms(), self._boot_id)

    async def now(self) -> EpochMs:
        """Return the store's wall clock."""
        return self.clock.now_ms()

    def open(self) -> None:
        """Connect and bring the schema up to date. Raises StoreError and its kinds."""
        connection = connect(self.path, busy_ms=self._busy_ms)
        try:
            migrate(connection, self.clock.now_ms())
            empty_log(connection)
        except StoreError:
            connection.close()
            raise
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, self.path) from error
        self._writer.start(connection, threaded=not self._inline)
        if not self._inline:
            self._reader.start(None, threaded=True)

    def connect(self, *, read_only: bool) -> sqlite3.Connection:
        """Return a new connection to the file."""
        return connect(self.path, busy_ms=self._busy_ms, read_only=read_only)

    async def close(self) -> None:
        """Finish what waits, then disconnect."""
        self._wakes.clear()
        for lane in {self._writer, self._reader}:
            await asyncio.to_thread(lane.stop) if not self._inline else lane.stop()

    async def write(self, operation: Write[T]) -> T:
        """Run an operation in a committed transaction. Raises StoreError; what the operation raises is raised here."""
        return await self._writer.run(operation)

    def gathered(
        self, operation: Joint[Item, Answered], foresee: Foresight[Item]
    ) -> Callable[[Sequence[Item]], Awaitable[tuple[Answered, ...]]]:
        """Return what writes items; all that waits here shares a transaction anyway."""
        del foresee  # no statement has far to go

        def write(items: Sequence[Item]) -> Awaitable[tuple[Answered, ...]]:
            return self.write(lambda transaction, moment: tuple(operation(transaction, moment, items)))

        return write

    async def read(self, operation: Read[T]) -> T:
        """Run an operation that only reads, on one snapshot."""
        return await self._reader.run(operation)

    def write_blocking(self, operation: Write[T]) -> T:
        """Run a write from a thread that isn't the event loop."""
        return self._writer.submit(operation).result()


class _Lane:
    """A connection and the thread that alone uses it."""

    def __init__(self, database: Database, name: str, *, read_only: bool) -> None:
        self._database = database
        self._name = name
        self._read_only = read_only
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._open = False
        self._log_grew = False

    def start(self, connection: sqlite3.Connection | None, *, threaded: bool) -> None:
        self._connection = connection
        self._open = True
        if threaded:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def run(self, operation: Callable[[Transaction, Moment], T]) -> T:
        future = self.submit(operation)
        if future.done():
            return future.result()
        return await asyncio.shield(asyncio.wrap_future(future))

    def submit(self, operation: Callable[[Transaction, Moment], T]) -> Future[T]:
        future: Future[T] = Future()
        if not self._open:
            future.set_exception(
                StoreError(f"The database {self._database.path} is closed.", remedy="Open the store first.")
            )
        elif self._thread is None:
            self._run_batch([(operation, future)])
        else:
            self._calls.put((operation, future))
        return future

    def _serve(self) -> None:
        while (first := self._next()) is not None:
            batch, last = self._gather(first)
            self._run_batch(batch)
            if last:
                return

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

    def _gather(self, first: _Call) -> tuple[list[_Call], bool]:
        batch = [first]
        while len(batch) < BATCH_MAX:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                break
            if call is None:
                return batch, True
            batch.append(call)
        return batch, False

    def _run_batch(self, batch: list[_Call]) -> None:
        self._log_grew = not self._read_only
        try:
            answers = self._transact(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, all of the batch must hear of it and the thread go on
            self._recover(error)
            told = translate(error, self._database.path) if isinstance(error, sqlite3.Error) else error
            answers = [(None, told)] * len(batch)
        for (_, future), (value, failure) in zip(batch, answers, strict=True):
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)

    def _transact(self, batch: list[_Call]) -> list[tuple[Any, BaseException | None]]:
        if self._connection is None:
            self._connection = self._database.connect(read_only=self._read_only)
        connection = self._connection
        connection.execute(self._begin)
        moment = self._database.moment()
        transaction = SqliteTransaction(connection, moment)
        answers = [self._run_one(transaction, moment, operation) for operation, _ in batch]
        connection.execute("COMMIT")
        return answers

    def _run_one(
        self, transaction: SqliteTransaction, moment: Moment, operation: Callable[[Transaction, Moment], Any]
    ) -> tuple[Any, BaseException | None]:
        connection = transaction.connection
        connection.execute("SAVEPOINT operation")
        try:
            value = operation(transaction, moment)
        except Exception as error:  # whatever it is, it is the caller's answer, and the others go on
            if not connection.in_transaction:
                raise  # SQLite took the whole transaction back (disk full, IO error): all fail
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
            return None, _told(error, self._database.path)
        connection.execute("RELEASE operation")
        return value, None

    def _recover(self, error: Exception) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            self._connection = None
            return
        if is_full(error):
            empty_log(connection)
        if needs_new_connection(error) and self._database.path != MEMORY:
            connection.close()
            self._connection = None


def _told(error: Exception, path: str) -> Exception:
    """Return what the caller hears: a value that SQLite refuses is a bug and stays itself, all else befell the file."""
    if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
        return translate(error, path)
    return error
