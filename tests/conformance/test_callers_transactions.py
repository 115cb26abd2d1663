"""Enqueueing in a caller's own transaction: the job exists if and only if it commits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.numeric import FloatLoader
from psycopg.types.string import StrBinaryDumper
from sqlalchemy import create_engine

from kizami.core.errors import InvalidInputError, OtherDatabaseError, StoreBusyError, WrongStateError
from kizami.core.options import JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import BindingDeclaration, Store
from tests.conformance.callers import opened, plain
from tests.conformance.postgres_home import address_of, furnish
from tests.conformance.whole_store import APP, BINDING, TIMEOUT_MS, StillClock, local_ids, new_job, take, whole_store
from tests.postgres_server import fresh_database

KEYED = JobOptions(timeout_ms=TIMEOUT_MS, unique_key="k")


async def _job_ids(store: Store) -> list[str]:
    return local_ids(await take(store))


async def test_bulk_keeps_its_order_and_makes_few_statements(whole: Store, home: Path) -> None:
    async with plain(home) as caller:
        answers = await whole.jobs.enqueue_in(caller.connection, [new_job(f"n{at:04}") for at in range(1_000)])
        await caller.commit()
    assert [answer.job_id for answer in answers] == [f"{BINDING}#0:n{at:04}" for at in range(1_000)]
    assert (await whole.jobs.count_by_state(APP))[BINDING][JobState.SCHEDULED] == 1_000


async def test_the_store_need_not_be_open(whole: Store, home: Path, still_clock: StillClock) -> None:
    async with whole_store(home, still_clock) as closed:
        pass
    async with plain(home) as caller:
        closed.jobs.enqueue_in_blocking(caller.connection, [new_job("a")])
        await caller.commit()
    assert await _job_ids(whole) == ["a"]


async def test_workers_are_woken_by_the_callers_commit(whole: Store, home: Path) -> None:
    if address_of(home) is None:
        return  # tests/unit/test_store_watch.py: the file is watched, whoever writes to it
    woken = asyncio.Event()
    await whole.jobs.enqueue([new_job("before")])
    async with plain(home) as caller:
        await whole.jobs.enqueue_in(caller.connection, [new_job("a")])
        whole.on_change(woken.set)
        await caller.commit()
        await asyncio.wait_for(woken.wait(), 30)


async def test_a_connection_to_a_copy_is_refused(
    whole: Store, home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if address_of(home) is None:
        with sqlite3.connect(tmp_path / "kizami.db") as source, sqlite3.connect(tmp_path / "copy.db") as copy:
            source.backup(copy)
        _close(source, copy)
        other: Any = sqlite3.connect(tmp_path / "copy.db")
        await _refused(whole, other)
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        furnish(url)
        other = psycopg.connect(url)
        with psycopg.connect(str(address_of(home))) as mine:
            mark = mine.execute("SELECT database_id FROM kizami_identity").fetchone()
        other.execute("UPDATE kizami_identity SET database_id = %s", mark)
        other.commit()
        await _refused(whole, other)


async def test_a_database_without_kizami_is_refused_and_its_transaction_goes_on(
    whole: Store, home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if address_of(home) is None:
        await _refused(whole, sqlite3.connect(tmp_path / "empty.db"))
        await _refused(whole, sqlite3.connect(":memory:"))
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        await _refused(whole, psycopg.connect(url))


async def test_another_kind_of_database_and_what_is_no_connection_are_refused(whole: Store, home: Path) -> None:
    if address_of(home) is not None:
        await _refused(whole, sqlite3.connect(":memory:"))
    engine = create_engine("sqlite://")
    for nonsense in (object(), "postgresql://here", engine):
        with pytest.raises(InvalidInputError, match=r"connection|transaction"):
            await whole.jobs.enqueue_in(nonsense, [new_job("a")])
    engine.dispose()


async def test_autocommit_without_a_transaction_is_refused(whole: Store, home: Path) -> None:
    for connection in _autocommitting(home):
        with pytest.raises(WrongStateError, match="autocommit"):
            await whole.jobs.enqueue_in(connection, [new_job("a")])
        connection.execute("BEGIN")
        await whole.jobs.enqueue_in(connection, [new_job("a")])
        connection.execute("ROLLBACK")
    assert await _job_ids(whole) == []


def _autocommitting(home: Path) -> Iterator[Any]:
    address = address_of(home)
    if address is None:
        connection: Any = sqlite3.connect(home / "kizami.db", isolation_level=None)
    else:
        connection = psycopg.connect(address, autocommit=True)
    yield connection
    connection.close()


async def test_the_callers_own_settings_change_nothing_and_stay(whole: Store, home: Path) -> None:
    async with plain(home) as caller:
        connection = caller.connection
        if isinstance(connection, sqlite3.Connection):
            connection.row_factory, connection.text_factory = lambda _, row: {"row": row}, bytes
        else:
            connection.row_factory, connection.cursor_factory = dict_row, psycopg.RawCursor
            connection.adapters.register_dumper(str, StrBinaryDumper)
            connection.adapters.register_loader("int8", FloatLoader)
        jobs = [new_job("a"), new_job("b", KEYED), new_job("c", KEYED)]
        answers = await whole.jobs.enqueue_in(connection, jobs)
        assert [answer.job_id for answer in answers] == [f"{BINDING}#0:{each}" for each in "abb"]
        row = connection.execute("SELECT 'text' AS text").fetchone()
        assert row in ({"row": (b"text",)}, {"text": "text"})
        await caller.commit()
    assert await _job_ids(whole) == ["a", "b"]


async def test_a_key_held_by_an_open_transaction_waits_for_its_end(whole: Store, home: Path) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    for commits in (True, False):
        key = JobOptions(timeout_ms=TIMEOUT_MS, unique_key=f"key-{commits}")
        async with plain(home) as first:
            (held,) = await whole.jobs.enqueue_in(first.connection, [new_job(f"first-{commits}", key)])
            second = asyncio.create_task(whole.jobs.enqueue([new_job(f"second-{commits}", key)]))
            await _until_it_waits(home, second)
            await (first.commit() if commits else first.roll_back())
            (answer,) = await second
        assert answer.existing is commits
        assert (answer.job_id == held.job_id) is commits


async def _until_it_waits(home: Path, task: asyncio.Task[Any]) -> None:
    """Wait until the task waits for a lock; SQLite has one lock for all, and the task has it not."""
    address = address_of(home)
    if address is None:
        await asyncio.wait([task], timeout=0.05)
        assert not task.done()
        return
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        while (await (await connection.execute(waiting)).fetchone()) is None:
            assert not task.done()


async def test_whoever_stops_waiting_gets_the_connection_back_as_it_was(whole: Store, home: Path) -> None:
    if address_of(home) is None:
        return  # there, nothing is awaited
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    for name in ("psycopg", "psycopg_async"):
        async with plain(home) as first, opened(home, name) as second:
            await whole.jobs.enqueue_in(first.connection, [new_job("held", KEYED)])
            await whole.jobs.enqueue_in(second.connection, [new_job(f"kept-{name}")])
            waiting = asyncio.create_task(whole.jobs.enqueue_in(second.connection, [new_job("given-up", KEYED)]))
            await _until_it_waits(home, waiting)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await second.commit()
            await first.roll_back()
    assert await _job_ids(whole) == ["kept-psycopg", "kept-psycopg_async"]


async def test_a_statement_that_fails_leaves_the_transaction_usable(whole: Store, home: Path) -> None:
    """The caller's own lock_timeout ends the wait for a key; SQLite has no lock of a key, but one for the file."""
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    async with plain(home) as first, plain(home) as second:
        await whole.jobs.enqueue_in(first.connection, [new_job("held", KEYED)])
        sqlite = address_of(home) is None
        second.connection.execute("PRAGMA busy_timeout = 1" if sqlite else "SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(StoreBusyError, match="repeat the transaction"):
            await whole.jobs.enqueue_in(second.connection, [new_job("late", KEYED)])
        await first.roll_back()
        await whole.jobs.enqueue_in(second.connection, [new_job("kept")])
        await second.commit()
    assert await _job_ids(whole) == ["kept"]


async def test_a_transaction_that_can_no_longer_write_says_so(whole: Store, home: Path) -> None:
    """It has read what another has changed since: there is nothing to do but to repeat it."""
    await whole.jobs.enqueue([new_job("first", KEYED)])
    async with plain(home) as caller:
        isolated = "BEGIN" if address_of(home) is None else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        caller.connection.execute(isolated)
        caller.connection.execute("SELECT count(*) FROM kizami_jobs").fetchall()
        await whole.jobs.enqueue([new_job("between", JobOptions(timeout_ms=TIMEOUT_MS, unique_key="other"))])
        with pytest.raises(StoreBusyError, match="repeat the transaction"):
            await whole.jobs.enqueue_in(
                caller.connection, [new_job("late", JobOptions(timeout_ms=TIMEOUT_MS, unique_key="other"))]
            )
        await caller.roll_back()


async def test_threads_enqueue_through_connections_of_their_own(whole: Store, home: Path) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    address = address_of(home)

    def enqueue(number: int) -> None:
        connection: Any = sqlite3.connect(home / "kizami.db") if address is None else psycopg.connect(address)
        whole.jobs.enqueue_in_blocking(connection, [new_job(f"t{number}")])
        connection.commit()
        connection.close()

    threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert sorted(await _job_ids(whole)) == [f"t{number}" for number in range(8)]


async def _refused(store: Store, connection: Any) -> None:
    with pytest.raises(OtherDatabaseError, match="jobs are in"):
        await store.jobs.enqueue_in(connection, [new_job("a")])
    assert connection.execute("SELECT 1").fetchone() == (1,)
    _close(connection)


def _close(*connections: Any) -> None:
    for connection in connections:
        connection.close()
