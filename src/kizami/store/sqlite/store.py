"""The SQLite store: one file, its rooms, and the watch for changes by other processes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kizami.core.errors import ConfigurationError, StoreError
from kizami.store.rooms.bindings import BindingRoom
from kizami.store.rooms.boards import BoardRoom
from kizami.store.rooms.cursors import CursorRoom
from kizami.store.rooms.deliveries import DeliveryRoom
from kizami.store.rooms.gates import GateRoom
from kizami.store.rooms.jobs import JobRoom
from kizami.store.rooms.leases import LeaseRoom
from kizami.store.rooms.schedules import ScheduleRoom
from kizami.store.rooms.workers import WorkerRoom
from kizami.store.sqlite.database import Database
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.runtime import Runtime

log = logging.getLogger("kizami.store")
WATCH_SECONDS: Final = 0.25
_SQL: Final = load("database")


def path_of(url: str) -> str:
    """Return the file of a `sqlite:///` URL (four slashes for an absolute path). Raises ConfigurationError."""
    scheme, found, rest = url.partition(":///")
    if scheme != "sqlite" or not found or not rest:
        raise ConfigurationError(
            "The database URL names no file.",
            remedy="Set KIZAMI_DATABASE_URL to sqlite:///kizami.db (or sqlite:////absolute/path.db).",
        )
    return rest


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

    async def open(self) -> None:
        """Connect and migrate. Raises StoreError and its kinds."""
        if self._database.is_inline:
            self._database.open()
        else:
            await asyncio.to_thread(self._database.open)
            self._watcher = asyncio.create_task(self._watch(), name="kizami-store-watch")

    async def close(self) -> None:
        """Finish what waits and disconnect."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
            self._watcher = None
        await self._database.close()

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` soon after this or another process changed something; return what ends that."""
        return self._database.on_change(wake)

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        await self._database.write(lambda transaction, _: transaction.execute(_SQL["check"], {}).fetchone())

    async def _watch(self) -> None:
        """Notice other processes' commits: the file's data version costs no lock and no page read."""
        seen: int | None = None
        while True:
            await self._runtime.clock.sleep(WATCH_SECONDS)
            try:
                version = await self._database.data_version()
            except StoreError as error:
                log.warning("the database can't be watched: %s", error)
                continue
            if seen is not None and version != seen:
                self._database.announce()
            seen = version
