"""The mirror's rooms on a real SQLite file, under clocks that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kizami.store.rooms.boards import BoardRoom
from kizami.store.rooms.cursors import CursorRoom
from kizami.store.rooms.deliveries import DeliveryRoom
from kizami.store.rooms.gates import GateRoom
from kizami.store.rooms.leases import LeaseRoom
from kizami.store.rooms.schedules import ScheduleRoom
from kizami.store.sqlite.database import Database

START_MS = 1_780_000_000_000


@dataclass
class HandClock:
    """Wall and boot clock, moved by the test; sleeping moves both."""

    now: int = START_MS
    boot: int = 1_000_000
    slept: list[float] = field(default_factory=list)

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


class MirrorStore:
    """The rooms that the mirror uses, over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.leases = LeaseRoom(database)
        self.deliveries = DeliveryRoom(database)
        self.boards = BoardRoom(database)
        self.gates = GateRoom(database)
        self.cursors = CursorRoom(database)
        self.schedules = ScheduleRoom(database)


@asynccontextmanager
async def mirror_store(folder: Path, clock: HandClock, boot_id: str = "boot-1") -> AsyncIterator[MirrorStore]:
    """Open the database of a folder; opening it again is a restart."""
    database = Database(str(folder / "kizami.db"), clock, boot_id)
    database.open()
    try:
        yield MirrorStore(database)
    finally:
        await database.close()
