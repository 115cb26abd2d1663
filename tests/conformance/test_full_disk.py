"""A disk so small that SQLite's own log can fill it: the store says so, loses nothing, and serves again."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from kizami.core.errors import StoreFullError
from kizami.store.sqlite.database import Database
from kizami.store.sqlite.write_ahead import LOG_BYTES
from tests.conformance.test_database_faults import limit_pages, names, put
from tests.conformance.whole_store import StillClock

DISK_BYTES = 1_048_576
BALLAST_BYTES = 300_000


class Disk(Protocol):
    """A folder whose room is small, and can be made larger."""

    folder: Path

    async def fill(self, database: Database) -> None:
        """Leave a little room only."""

    async def free(self, database: Database) -> None:
        """Give back what `fill` took."""


@dataclass
class SmallDisk:
    """A real file system of 1 MiB."""

    folder: Path

    async def fill(self, database: Database) -> None:
        del database
        (self.folder / "ballast").write_bytes(b"x" * BALLAST_BYTES)

    async def free(self, database: Database) -> None:
        del database
        (self.folder / "ballast").unlink()


@dataclass
class LimitedFile:
    """For machines on which only others may mount: a file that may grow by a few pages."""

    folder: Path

    async def fill(self, database: Database) -> None:
        await limit_pages(database, 100)

    async def free(self, database: Database) -> None:
        await limit_pages(database, 1_000)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Mount a small disk where that is allowed; elsewhere limit the file."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    made = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if not (mount and unmount) or subprocess.run([mount, *made], capture_output=True, check=False).returncode:
        yield LimitedFile(folder)
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([unmount, str(folder)], check=True)


async def fill_up(database: Database) -> list[str]:
    """Write until nothing fits any more; return what was accepted."""
    accepted: list[str] = []

    async def write_on() -> None:
        for number in range(2_000):
            name = f"n{number:04}"
            await database.write(put(name, 2_000))
            accepted.append(name)

    with pytest.raises(StoreFullError, match="is full") as caught:
        await write_on()
    assert "Free at least 4 MiB" in str(caught.value.remedy)
    return accepted


@asynccontextmanager
async def opened(folder: Path, clock: StillClock) -> AsyncIterator[Database]:
    database = Database(str(folder / "kizami.db"), clock, "boot-1", busy_ms=50)
    database.open()
    try:
        yield database
    finally:
        await database.close()


async def test_a_disk_that_the_log_could_fill_serves_again_once_there_is_room(
    tmp_path: Path, still_clock: StillClock
) -> None:
    with small_disk(tmp_path) as disk:
        async with opened(tmp_path, still_clock) as database:
            await disk.fill(database)
            accepted = await fill_up(database)
            assert len(accepted) > 20
            with pytest.raises(StoreFullError):
                await database.write(put("too large", 400_000))
            assert await database.read(names) == accepted
            await disk.free(database)
            after = [await database.write(put(f"z{number}", 2_000)) for number in range(9)]
            assert await database.read(names) == accepted + after
        async with opened(tmp_path, still_clock) as database:
            assert await database.read(names) == accepted + after


async def test_the_log_stays_short_under_steady_writing(tmp_path: Path, still_clock: StillClock) -> None:
    log = tmp_path / "kizami.db-wal"
    largest = 0
    async with opened(tmp_path, still_clock) as database:
        assert log.stat().st_size == 0  # the schema has been moved into the file
        for number in range(200):
            await database.write(put(f"n{number}", 40_000))
            largest = max(largest, log.stat().st_size)
    assert 0 < largest < 1.5 * LOG_BYTES
