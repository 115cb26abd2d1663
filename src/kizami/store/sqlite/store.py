"""The SQLite store: one file, its rooms, and the watch for changes by other processes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kizami.core.errors import StoreError
from kizami.store.protocol.store import ALL_TOPICS, Topic
from kizami.store.rooms.bindings import BindingRoom
from kizami.store.rooms.boards import BoardRoom
from kizami.store.rooms.cursors import CursorRoom
from kizami.store.rooms.deliveries import DeliveryRoom
from kizami.store.rooms.gates import GateRoom
from kizami.store.rooms.housekeeping import HousekeepingRoom
from kizami.store.rooms.identity import IdentityRoom
from kizami.store.rooms.jobs import JobRoom
from kizami.store.rooms.leases import LeaseRoom
from kizami.store.rooms.schedules import ScheduleRoom
from kizami.store.rooms.workers import WorkerRoom
from kizami.store.sqlite.connection import MEMORY
from kizami.store.sqlite.database import Database
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.runtime import Runtime

log = logging.getLogger("kizami.store")
WATCH_SECONDS: Final = 0.25
_SQL: Final = load("database")


class SqliteStore:
    """One SQLite file."""

    def __init__(self, path: str, runtime: Runtime, *, busy_ms: int = 5_000, inline: bool = False) -> None:
        self._runtime = runtime
        self._database = Database(path, runtime.clock, runtime.process.boot_id, busy_ms=busy_ms, inline=inline)
        self._watcher: asyncio.Task[None] | None = None
        self.jobs = JobRoom(self._database)
        self.bindings = BindingRoom(self._database)
        self.schedules = ScheduleRoom(self._database)
        self.workers = WorkerRoom(self._database)
        self.leases = LeaseRoom(self._database)
        self.deliveries = DeliveryRoom(self._database)
        self.boards = BoardRoom(self._database)
        self.gates = GateRoom(self._database)
        self.cursors = CursorRoom(self._database)
        self.identity = IdentityRoom(self._database)
        self.housekeeping = HousekeepingRoom(self._database)

    @property
    def is_lasting(self) -> bool:
        """Tell whether what is stored is still there after this process."""
        return self._database.path != MEMORY

    async def open(self) -> None:
        """Connect and migrate. Raises StoreError and its kinds, WrongStateError when it is open."""
        if self._database.is_inline:
            self._database.open()
            return
        self._database.ownership.take()
        try:
            await asyncio.to_thread(self._database.open)
        except BaseException:
            self._database.ownership.release()
            raise
        else:
            self._watcher = asyncio.create_task(self._watch(), name="kizami-store-watch")

    async def close(self) -> None:
        """Finish what waits and disconnect. Raises WrongStateError on another loop."""
        self._database.ownership.require()
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
            self._watcher = None
        await self._database.close()
        self._database.ownership.release()

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        """Call `wake` soon after this or another process changed something; return what ends that."""
        return self._database.on_change(wake, topics)

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        await self._database.write(lambda transaction, _: transaction.execute(_SQL["check"], {}).fetchone())

    async def _watch(self) -> None:
        """Notice other processes' commits: the file's data version is asked when its log was written to.

        Looking at the log file is all that an idle process does here. A write that falls into one tick of the file
        system's clock with the look before is found by those who wait, whose waits are short.
        """
        written, seen = None, -1
        while True:
            await self._runtime.clock.sleep(WATCH_SECONDS)
            looked = self._database.log_written()
            if looked is not None and looked == written:
                continue
            try:
                version = await self._database.data_version()
            except StoreError as error:
                log.warning("the database can't be watched: %s", error)
                continue
            if version != seen:
                self._database.announce(*ALL_TOPICS)
            written, seen = looked, version
