"""Real faults of a real file: each is told in our own words, nothing is half done, and work goes on afterwards."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kizami.core.errors import (
    InvalidInputError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)
from kizami.store.protocol import Store
from kizami.store.sqlite.connection import connect
from kizami.store.sqlite.database import Database
from kizami.store.transaction import Moment, Transaction, Write
from tests.conformance.whole_store import APP, StillClock, employ, local_ids, new_job, raw, sqlite_store, take

BUSY_MS = 50
NOBODY = 65_534


@pytest.fixture
async def database(tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Database]:
    opened = Database(str(tmp_path / "kizami.db"), still_clock, "boot-1", busy_ms=BUSY_MS)
    opened.open()
    yield opened
    await opened.close()


@contextmanager
def write_lock(file: Path) -> Iterator[None]:
    """Hold the write lock of a file, as a shell with an open transaction does."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def put(name: str, size: int = 0) -> Write[str]:
    """Return a write that adds one row."""

    def operation(transaction: Transaction, _: Moment) -> str:
        values = ("shop", name, f'"{"x" * size}"')
        raw(transaction).execute("INSERT INTO kizami_cursors VALUES (?, ?, ?, 0)", values)
        return name

    return operation


def names(transaction: Transaction, _: Moment) -> list[str]:
    return [row["name"] for row in raw(transaction).execute("SELECT name FROM kizami_cursors ORDER BY name")]


async def limit_pages(database: Database, pages: int) -> None:
    """Let the file grow by that many pages and no further: a full disk, for SQLite."""

    def operation(transaction: Transaction, _: Moment) -> None:
        used = raw(transaction).execute("PRAGMA page_count").fetchone()[0]
        raw(transaction).execute(f"PRAGMA max_page_count = {used + pages}")

    await database.write(operation)


async def test_a_full_disk_refuses_whole_operations_and_only_them(database: Database) -> None:
    await limit_pages(database, 2)
    with pytest.raises(StoreFullError, match="is full") as caught:
        await database.write(_both(put("half"), put("too large", 100_000)))
    assert caught.value.remedy
    assert await database.read(names) == []
    assert await database.write(put("small")) == "small"
    await limit_pages(database, 1_000)
    assert await database.write(put("too large", 100_000)) == "too large"
    assert await database.read(names) == ["small", "too large"]


def _both(first: Write[str], second: Write[str]) -> Write[None]:
    def operation(transaction: Transaction, moment: Moment) -> None:
        first(transaction, moment)
        second(transaction, moment)

    return operation


async def test_a_full_disk_enqueues_all_or_none(tmp_path: Path, still_clock: StillClock) -> None:
    async with sqlite_store(tmp_path, still_clock) as store:
        await employ(store, "w1")
        await limit_pages(store._database, 8)  # noqa: SLF001 - the limit belongs to the writer's own connection
        large = [replace(new_job(f"j{number}"), payload=f'"{"x" * 5_000}"') for number in range(40)]
        with pytest.raises(StoreFullError):
            await store.jobs.enqueue(large)
        assert await take(store) == []
        await store.jobs.enqueue([new_job("small")])
        assert local_ids(await take(store)) == ["small"]


async def test_a_file_locked_by_another_process_is_told_and_free_again_afterwards(
    tmp_path: Path, still_clock: StillClock
) -> None:
    async with sqlite_store(tmp_path, still_clock, busy_ms=BUSY_MS) as store:
        await employ(store, "w1")
        with write_lock(tmp_path / "kizami.db"):
            with pytest.raises(StoreBusyError, match="locked by another process") as caught:
                await store.jobs.enqueue([new_job("a")])
            assert caught.value.facts == {"path": str(tmp_path / "kizami.db")}
            with pytest.raises(StoreBusyError):
                await store.check()
            assert await store.jobs.count_by_state(APP) == {}  # readers don't wait for the writer
        await store.check()
        await store.jobs.enqueue([new_job("b")])
        assert local_ids(await take(store)) == ["b"]


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Take the right to write a folder and its files; a superuser, whom no mode binds, becomes nobody meanwhile."""
    superuser = os.geteuid() == 0
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        if superuser:
            os.seteuid(NOBODY)
        yield
    finally:
        if superuser:
            os.seteuid(0)
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)


async def test_a_folder_that_can_not_be_written_is_told_and_serves_again_afterwards(still_clock: StillClock) -> None:
    with TemporaryDirectory() as name:  # not under pytest's own folder, into which only its user may look
        folder = Path(name)
        async with sqlite_store(folder, still_clock) as store:
            await store.jobs.enqueue([new_job("a")])
        with unwritable(folder), pytest.raises(StoreReadOnlyError, match="can't be written") as caught:
            connect(str(folder / "kizami.db"), busy_ms=BUSY_MS).execute("BEGIN IMMEDIATE")
        assert caught.value.remedy
        with unwritable(folder), pytest.raises(StoreReadOnlyError, match="can't be written"):
            connect(str(folder / "new.db"), busy_ms=BUSY_MS)
        async with sqlite_store(folder, still_clock) as store:
            await employ(store, "w1")
            assert local_ids(await take(store)) == ["a"]


async def test_a_closed_store_says_so(tmp_path: Path, still_clock: StillClock) -> None:
    async with sqlite_store(tmp_path, still_clock) as store:
        pass
    with pytest.raises(StoreError, match="is closed"):
        await store.jobs.enqueue([new_job("a")])


async def opened(path: Path, clock: StillClock) -> None:
    database = Database(str(path), clock, "boot-1", busy_ms=BUSY_MS)
    database.open()
    await database.close()


async def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path, still_clock: StillClock) -> None:
    file = tmp_path / "notes.txt"
    text = "not a database, but longer than the header of one, and then some more text to be sure" * 20
    file.write_text(text)
    with pytest.raises(StoreError, match=r"notes\.txt is not a SQLite database") as caught:
        await opened(file, still_clock)
    assert caught.value.remedy
    assert file.read_text() == text


async def test_a_missing_folder_is_told(tmp_path: Path, still_clock: StillClock) -> None:
    with pytest.raises(StoreError, match=r"The folder .*missing does not exist"):
        await opened(tmp_path / "missing" / "kizami.db", still_clock)
    (tmp_path / "missing").mkdir()
    await opened(tmp_path / "missing" / "kizami.db", still_clock)


async def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path, still_clock: StillClock) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        await opened(tmp_path, still_clock)


@pytest.mark.parametrize(
    ("path", "message"),
    [("n" * 5_000, "can't be opened: File name too long"), ("/dev/null", "is not a regular file")],
)
async def test_a_path_that_can_not_be_a_database_is_told(still_clock: StillClock, path: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        await opened(Path(path), still_clock)
    assert caught.value.remedy == "Change the database URL." or "Name another" in str(caught.value.remedy)
    assert len(str(caught.value)) < 400


async def test_an_operation_that_fails_takes_back_only_itself(database: Database) -> None:
    """Group commit: operations of one transaction don't share their failures."""
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    release = asyncio.Event()

    def hold(_: Transaction, __: Moment) -> None:
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

    def fail(transaction: Transaction, moment: Moment) -> None:
        put("taken back")(transaction, moment)
        raise NotFoundError("nothing there")

    first = asyncio.create_task(database.write(hold))
    await started.wait()
    operations = [put("a"), fail, put("b"), put("a"), put("c")]
    waiting = [asyncio.create_task(database.write(operation)) for operation in operations]
    await asyncio.to_thread(bool)  # every task has handed its operation over
    release.set()
    answers = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), str, NotFoundError, str, sqlite3.IntegrityError, str]
    assert await database.read(names) == ["a", "b", "c"]


async def test_a_reader_can_not_write(database: Database) -> None:
    with pytest.raises(StoreReadOnlyError):
        await database.read(put("a"))
    assert await database.read(names) == []


OPEN = """
import sys
from kizami.runtime import SystemClock
from kizami.store.sqlite.database import Database
sys.stdin.readline()
Database(sys.argv[1], SystemClock(), "boot-1").open()
"""


def test_processes_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    file = tmp_path / "kizami.db"
    command = [sys.executable, "-c", OPEN, str(file)]
    starts = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for start in starts:
        assert start.stdin is not None
        start.stdin.write("go\n")
        start.stdin.close()
    assert [start.wait() for start in starts] == [0, 0, 0, 0]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT number, name FROM kizami_migrations").fetchall() == [(1, "initial")]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_newer_schema_serves_the_release_before_it(tmp_path: Path, still_clock: StillClock) -> None:
    """During a rolling deploy an old process may start after a new one has migrated."""
    file = tmp_path / "kizami.db"
    await opened(file, still_clock)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO kizami_migrations VALUES (2, 'from the future', 0)")
    await opened(file, still_clock)


async def test_a_schema_of_another_history_is_refused(tmp_path: Path, still_clock: StillClock) -> None:
    file = tmp_path / "kizami.db"
    await opened(file, still_clock)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE kizami_migrations SET name = 'something_else'")
    with pytest.raises(StoreVersionError, match="migration 1 'something_else'") as caught:
        await opened(file, still_clock)
    assert caught.value.remedy


async def test_a_migration_that_fails_leaves_nothing(tmp_path: Path, still_clock: StillClock) -> None:
    file = tmp_path / "kizami.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE kizami_schedules (mine)")
    with pytest.raises(StoreError, match="already exists"):
        await opened(file, still_clock)
    with closing(sqlite3.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert tables == [("kizami_schedules",)]
        connection.execute("DROP TABLE kizami_schedules")
    await opened(file, still_clock)


async def test_the_writer_survives_whatever_an_operation_raises(whole: Store) -> None:
    with pytest.raises(InvalidInputError):
        await whole.jobs.sweep(APP, 2**70)
    await whole.jobs.enqueue([new_job("a")])
    assert local_ids(await take(whole)) == ["a"]
