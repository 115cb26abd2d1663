"""The PostgreSQL store: one database, its rooms, and the ear for changes by other processes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kizami.store.postgres.database import Database
from kizami.store.postgres.listener import Listener
from kizami.store.postgres.migrate import require_current
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
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.postgres.place import Place

_SQL: Final = load("database")


class PostgresStore:
    """One PostgreSQL database."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._listener: Listener | None = None
        database = self._database = Database(place)
        self.jobs = JobRoom(database)
        self.bindings = BindingRoom(database)
        self.schedules = ScheduleRoom(database)
        self.workers = WorkerRoom(database)
        self.leases = LeaseRoom(database)
        self.deliveries = DeliveryRoom(database)
        self.boards = BoardRoom(database)
        self.gates = GateRoom(database)
        self.cursors = CursorRoom(database)
        self.identity = IdentityRoom(database)
        self.housekeeping = HousekeepingRoom(database)

    @property
    def is_lasting(self) -> bool:
        """Tell whether what is stored is still there after this process: always."""
        return True

    async def open(self) -> None:
        """Connect and look at the schema; it is never changed here. Raises StoreError; WrongStateError when open."""
        self._database.ownership.take()
        try:
            await asyncio.to_thread(require_current, self._place)
        except BaseException:
            self._database.ownership.release()
            raise
        self._database.open()
        loop = asyncio.get_running_loop()

        def wake(topics: tuple[Topic, ...]) -> None:
            with suppress(RuntimeError):  # the loop was closed, with the store still open
                loop.call_soon_threadsafe(self._database.wake, topics)

        listener = Listener(self._place, wake)
        self._database.on_announce(listener.tell_others)
        listener.start()
        self._listener = listener

    async def close(self) -> None:
        """Finish what waits and disconnect."""
        self._database.ownership.require()
        await self._database.close()
        if self._listener is not None:
            await asyncio.to_thread(self._listener.stop)
            self._listener = None
        self._database.ownership.release()

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        """Call `wake` soon after this or another process changed something; return what ends that."""
        return self._database.on_change(wake, topics)

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        await self._database.write(lambda transaction, _: transaction.execute(_SQL["check"], {}).fetchone())
