"""One SQLite file with three lanes, all awaited from the event loop: writes, the engine's reads, and people's looks.

Writes that wait while a commit is in progress join the next one. What has been answered has been committed.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from typing import TYPE_CHECKING, Final, TypeVar

from kizami.core.errors import StoreError
from kizami.store.callers import driver_connection, driver_connection_async
from kizami.store.looks import Looks
from kizami.store.ownership import Ownership
from kizami.store.protocol.store import ALL_TOPICS, Topic
from kizami.store.sqlite.connection import MEMORY, connect, translate
from kizami.store.sqlite.joined import joined
from kizami.store.sqlite.lane import Lane
from kizami.store.sqlite.migrate import migrate
from kizami.store.sqlite.write_ahead import empty_log
from kizami.store.statements import load
from kizami.store.transaction import Moment
from kizami.store.wakes import Wakes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kizami.core.times import EpochMs
    from kizami.runtime import Clock
    from kizami.store.transaction import Ahead, Alone, Foresight, Joint, Read, Write

T = TypeVar("T")
Item = TypeVar("Item")
Answered = TypeVar("Answered")
_SQL: Final = load("database")


class Database:
    """The file and its three threads. `inline` runs everything on the caller's thread (for simulated time)."""

    def __init__(self, path: str, clock: Clock, boot_id: str, *, busy_ms: int = 5_000, inline: bool = False) -> None:
        self.path = path
        self.clock = clock
        self._boot_id = boot_id
        self._busy_ms = busy_ms
        self._inline = inline or path == MEMORY
        self._wakes = Wakes()
        self._writer = self._reader = self._looker = Lane(self, "kizami-writer", read_only=False)
        if not self._inline:
            self._reader = Lane(self, "kizami-reader", read_only=True)
            self._looker = Lane(self, "kizami-looker", read_only=True, is_for_looks=True)
        self._looks = Looks(path)
        self.ownership = Ownership(path)

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        """Call `wake` on the event loop after a change that somebody may wait for; return what ends that."""
        return self._wakes.add(wake, topics)

    def announce(self, *topics: Topic) -> None:
        """Tell those who wait in this process that there is something to look at."""
        self._wakes.call(topics)

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
        connection = self.connect(read_only=False)
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
            self._looker.start(None, threaded=True)

    def connect(self, *, read_only: bool) -> sqlite3.Connection:
        """Return a new connection to the file."""
        return connect(self.path, busy_ms=self._busy_ms, read_only=read_only)

    async def close(self) -> None:
        """Finish what waits, then disconnect."""
        self._wakes.clear()
        for lane in (self._looker, self._reader, self._writer):
            await asyncio.to_thread(lane.stop) if not self._inline else lane.stop()

    async def write(self, operation: Write[T]) -> T:
        """Run an operation in a committed transaction. Raises StoreError; what the operation raises is raised here."""
        self.ownership.require()
        return await self._writer.run(operation)

    async def share(self, operation: Write[T], foreseen: Sequence[Ahead] = ()) -> T:
        """Run an operation as `write` does, which shares its transactions anyway."""
        del foreseen
        return await self.write(operation)

    def gathered(
        self, operation: Joint[Item, Answered], foresee: Foresight[Item], alone: Alone[Item, Answered]
    ) -> Callable[[Sequence[Item]], Awaitable[tuple[Answered, ...]]]:
        """Return what writes items; all that waits here shares a transaction anyway."""
        del foresee, alone  # no statement has far to go

        def write(items: Sequence[Item]) -> Awaitable[tuple[Answered, ...]]:
            return self.write(lambda transaction, moment: tuple(operation(transaction, moment, items)))

        return write

    async def read(self, operation: Read[T]) -> T:
        """Run an operation that only reads, on one snapshot, for the engine; no look is before it."""
        self.ownership.require()
        return await self._reader.run(operation)

    async def look(self, operation: Read[T]) -> T:
        """Run an operation that only reads, for people. Raises StoreSlowError when it takes long or many ask."""
        self.ownership.require()
        future = self._looks.admit(lambda: self._looker.submit(operation))
        return future.result() if future.done() else await asyncio.wrap_future(future)

    async def join(self, connection: object, operation: Write[T]) -> T:
        """Run an operation in the transaction of a caller's connection, on the caller's thread, as SQLite wants it."""
        return self._join(await driver_connection_async(connection), operation)

    def join_blocking(self, connection: object, operation: Write[T]) -> T:
        """Run as `join` does, without an event loop."""
        return self._join(driver_connection(connection), operation)

    def _join(self, connection: object, operation: Write[T]) -> T:
        moment = self.moment()
        with joined(connection, self.path, moment) as transaction:
            return operation(transaction, moment)

    def write_blocking(self, operation: Write[T]) -> T:
        """Run a write from a thread that isn't the event loop."""
        return self._writer.submit(operation).result()
