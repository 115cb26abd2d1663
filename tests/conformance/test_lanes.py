"""Nothing that people ask holds up the engine, and whatever breaks in a thread, whoever waits for it is told."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from kizami.core.errors import StoreError, StoreSlowError, StoreUnclearError
from kizami.store.looks import LOOK_MS, LOOKS_MAX
from kizami.store.sqlite.database import Database
from kizami.store.transaction import Moment, Read, Transaction
from tests.conformance.whole_store import StillClock, raw

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
async def database(tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Database]:
    opened = Database(str(tmp_path / "kizami.db"), still_clock, "boot-1")
    opened.open()
    yield opened
    await opened.close()


def announced(started: asyncio.Event, sql: str) -> Read[int]:
    """Return a look that says when it begins."""
    loop = asyncio.get_running_loop()

    def operation(transaction: Transaction, _: Moment) -> int:
        loop.call_soon_threadsafe(started.set)
        return int(raw(transaction).execute(sql).fetchone()[0])

    return operation


def one(transaction: Transaction, _: Moment) -> int:
    return int(raw(transaction).execute("SELECT 1").fetchone()[0])


async def test_a_look_without_end_holds_up_neither_reads_nor_writes_and_is_ended(
    database: Database, still_clock: StillClock
) -> None:
    started = asyncio.Event()
    endless = asyncio.create_task(database.look(announced(started, ENDLESS)))
    await started.wait()
    behind = asyncio.create_task(database.look(one))
    assert await database.read(one) == 1
    assert await database.write(one) == 1
    assert await database.data_version() >= 0
    still_clock.move(LOOK_MS + 1)
    answers = await asyncio.gather(endless, behind, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreSlowError, StoreSlowError]
    assert "within 5 seconds" in str(answers[0])
    assert await database.look(one) == 1


async def test_a_look_too_many_is_refused_and_those_of_people_who_left_are_not_made(
    database: Database, still_clock: StillClock
) -> None:
    started, unwanted = asyncio.Event(), asyncio.Event()
    endless = asyncio.create_task(database.look(announced(started, ENDLESS)))
    await started.wait()
    waiting = [asyncio.create_task(database.look(announced(unwanted, "SELECT 1"))) for _ in range(LOOKS_MAX - 1)]
    await asyncio.to_thread(bool)  # every task has handed its look over
    with pytest.raises(StoreSlowError, match=f"{LOOKS_MAX} questions") as caught:
        await database.look(one)
    assert caught.value.remedy
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    still_clock.move(LOOK_MS + 1)
    await asyncio.gather(endless, return_exceptions=True)
    assert await database.look(one) == 1
    assert not unwanted.is_set()


class Fragile(sqlite3.Connection):
    """A connection whose next statements of some kinds fail."""

    faults: dict[str, sqlite3.Error]

    def execute(self, sql: str, parameters: object = ()) -> sqlite3.Cursor:
        for beginning, error in getattr(self, "faults", {}).items():
            if sql.startswith(beginning):
                del self.faults[beginning]
                raise error
        return super().execute(sql, parameters)  # type: ignore[arg-type]  # as it came


class FragileDatabase(Database):
    """A database whose connections can be told to fail."""

    def __init__(self, path: str, clock: StillClock) -> None:
        super().__init__(path, clock, "boot-1")
        self.connections: list[Fragile] = []

    def connect(self, *, read_only: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, factory=Fragile, timeout=1
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA query_only = {read_only}")
        self.connections.append(connection)
        return connection


@pytest.fixture
async def fragile(tmp_path: Path, still_clock: StillClock) -> AsyncIterator[FragileDatabase]:
    opened = FragileDatabase(str(tmp_path / "kizami.db"), still_clock)
    opened.open()
    yield opened
    await opened.close()


def failure(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("injected")
    error.sqlite_errorcode = code
    return error


async def test_a_writer_that_breaks_outside_of_an_operation_tells_who_waits_and_goes_on(
    fragile: FragileDatabase,
) -> None:
    fragile.connections[0].faults = {
        "COMMIT": failure(sqlite3.SQLITE_FULL),
        "PRAGMA wal_checkpoint": failure(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError),
    }
    with pytest.raises(StoreError, match="The thread kizami-writer of the database"):
        await asyncio.wait_for(fragile.write(one), 10)
    assert await asyncio.wait_for(fragile.write(one), 10) == 1


@pytest.mark.parametrize("lane", ["write", "read", "look"])
async def test_not_even_the_end_of_the_thread_leaves_anybody_waiting(database: Database, lane: str) -> None:
    def leave(_: Transaction, __: Moment) -> int:
        raise SystemExit

    ask = getattr(database, lane)
    with pytest.raises(StoreError, match="broke: SystemExit"):
        await asyncio.wait_for(ask(leave), 10)
    assert await asyncio.wait_for(ask(one), 10) == 1


async def test_a_commit_whose_sync_fails_is_unclear_and_what_failed_before_it_is_not(fragile: FragileDatabase) -> None:
    fragile.connections[0].faults = {"COMMIT": failure(sqlite3.SQLITE_IOERR_FSYNC)}
    with pytest.raises(StoreUnclearError, match="in the middle of a commit") as caught:
        await fragile.write(one)
    assert "unique_key" in str(caught.value.remedy)
    assert await fragile.write(one) == 1
    fragile.connections[-1].faults = {"COMMIT": failure(sqlite3.SQLITE_BUSY)}
    with pytest.raises(StoreError) as clear:
        await fragile.write(one)
    assert not isinstance(clear.value, StoreUnclearError)


async def test_a_closed_database_answers_everybody(tmp_path: Path, still_clock: StillClock) -> None:
    opened = Database(str(tmp_path / "kizami.db"), still_clock, "boot-1")
    opened.open()
    waiting = [asyncio.create_task(opened.write(one)) for _ in range(100)]
    await opened.close()
    answers = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
    assert all(answer == 1 or isinstance(answer, StoreError) for answer in answers)
    with closing(sqlite3.connect(tmp_path / "kizami.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
