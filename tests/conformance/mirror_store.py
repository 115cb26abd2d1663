"""The mirror's rooms on a real database, under clocks that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kizami.store.postgres.database import Database as PostgresDatabase
from kizami.store.postgres.place import place_of
from kizami.store.rooms.boards import BoardRoom
from kizami.store.rooms.cursors import CursorRoom
from kizami.store.rooms.deliveries import DeliveryRoom
from kizami.store.rooms.gates import GateRoom
from kizami.store.rooms.housekeeping import HousekeepingRoom
from kizami.store.rooms.identity import IdentityRoom
from kizami.store.rooms.leases import LeaseRoom
from kizami.store.rooms.schedules import ScheduleRoom
from kizami.store.sqlite.database import Database as SqliteDatabase
from kizami.store.transaction import Database
from tests.conformance.postgres_home import address_of, clock_of

START_MS = 1_780_000_000_000


@dataclass
class HandClock:
    """Wall and boot clock, moved by the test; sleeping moves both."""

    now: int = START_MS
    boot: int = 1_000_000
    slept: list[float] = field(default_factory=list)
    shown_by: list[Callable[[int], None]] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def boot_ms(self) -> int:
        return self.boot

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.move(round(seconds * 1000))

    def move(self, ms: int) -> None:
        self.now += ms
        self.boot += ms
        for show in self.shown_by:
            show(self.now)


class MirrorStore:
    """The rooms that the mirror uses, over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.leases = LeaseRoom(database)
        self.deliveries = DeliveryRoom(database)
        self.boards = BoardRoom(database)
        self.gates = GateRoom(database)
        self.cursors = CursorRoom(database)
        self.housekeeping = HousekeepingRoom(database)
        self.identity = IdentityRoom(database)
        self.schedules = ScheduleRoom(database)


@asynccontextmanager
async def mirror_store(folder: Path, clock: HandClock, boot_id: str = "boot-1") -> AsyncIterator[MirrorStore]:
    """Open the database of a folder; opening it again is a restart."""
    url = address_of(folder)
    if url is None:
        async with sqlite_rooms(folder, clock, boot_id) as store:
            yield store
        return
    with clock_of(url) as show:
        show(clock.now)
        clock.shown_by.append(show)
        database = PostgresDatabase(place_of(url))
        database.open()
        try:
            yield MirrorStore(database)
        finally:
            await database.close()
            clock.shown_by.remove(show)


@asynccontextmanager
async def sqlite_rooms(folder: Path, clock: HandClock, boot_id: str = "boot-1") -> AsyncIterator[MirrorStore]:
    """Open the SQLite file of a folder."""
    database = SqliteDatabase(str(folder / "kizami.db"), clock, boot_id)
    database.open()
    try:
        yield MirrorStore(database)
    finally:
        await database.close()
