"""Real faults of a real PostgreSQL: told in our own words, nothing is half done, and work goes on afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg import sql

from kizami.core.errors import StoreBusyError, StoreError, StoreReadOnlyError, StoreUnclearError, StoreVersionError
from kizami.store.postgres.connection import Connection, connect, is_pooled
from kizami.store.postgres.database import Database
from kizami.store.postgres.migrate import migrate, migrations, pending
from kizami.store.postgres.place import place_of
from kizami.store.postgres.session import _IDENTITY, Errand, Session
from kizami.store.postgres.store import PostgresStore
from kizami.store.postgres.transaction import PostgresTransaction
from kizami.store.transaction import Moment, Transaction, Write
from tests.conformance.whole_store import APP, employ, local_ids, new_job, take
from tests.own_postgres import OwnPostgres, line_to, own_postgres, pooler


@pytest.fixture
def migrated(postgres_url: str) -> str:
    """Give the URL of a database with the schema, on its own clock."""
    migrate(place_of(postgres_url))
    return postgres_url


@pytest.fixture(scope="module")
def own() -> Iterator[OwnPostgres]:
    with own_postgres() as server:
        migrate(place_of(server.url))
        yield server


@asynccontextmanager
async def database_at(url: str) -> AsyncIterator[Database]:
    database = Database(place_of(url))
    database.open()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def store_at(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(place_of(url))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class Put:
    """A write that adds one row, and counts how often it ran."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = 0

    def __call__(self, transaction: Transaction, moment: Moment) -> str:
        self.runs += 1
        raw(transaction).execute(
            "INSERT INTO kizami_cursors (app, name, position, moved_at) VALUES ('shop', %s, '1', %s)",
            (self.name, moment.now),
        )
        return self.name


def raw(transaction: Transaction) -> Connection:
    assert isinstance(transaction, PostgresTransaction)
    return transaction.connection


async def names(database: Database) -> list[str]:
    return await database.read(
        lambda transaction, _: [
            row["name"]
            for row in raw(transaction).execute("SELECT name FROM kizami_cursors WHERE app = 'shop' ORDER BY name")
        ]
    )


def cut_once(inner: Put) -> Write[str]:
    """Return a write whose connection the server ends in the middle, the first time."""

    def operation(transaction: Transaction, moment: Moment) -> str:
        answer = inner(transaction, moment)
        if inner.runs == 1:
            raw(transaction).execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return answer

    return operation


async def test_an_operation_whose_connection_is_cut_runs_again_and_is_kept_once(migrated: str) -> None:
    async with database_at(migrated) as database:
        put = Put("a")
        assert await database.write(cut_once(put)) == "a"
        assert put.runs == 2
        assert await names(database) == ["a"]


async def test_every_connection_ended_by_an_administrator_is_made_anew(migrated: str) -> None:
    async with store_at(migrated) as store:
        await employ(store, "w1")
        await store.jobs.enqueue([new_job("a")])
        store.jobs.vouch_blocking("w1", [])
        with psycopg.connect(migrated, autocommit=True) as administrator:
            administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        await store.jobs.enqueue([new_job("b")])
        store.jobs.vouch_blocking("w1", [])
        assert sorted(local_ids(await take(store))) == ["a", "b"]


async def test_a_restarted_server_is_found_again_and_what_was_answered_is_there(own: OwnPostgres) -> None:
    async with store_at(own.url) as store:
        await employ(store, "restart")
        await store.jobs.enqueue([new_job("a")])
        await asyncio.to_thread(own.control, "restart")
        await store.jobs.enqueue([new_job("b")])
        assert sorted(local_ids(await take(store, "restart"))) == ["a", "b"]


async def test_a_server_that_is_away_is_told_and_serves_again_afterwards(
    own: OwnPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kizami.store")
    async with store_at(own.url) as store:
        await asyncio.to_thread(own.control, "stop")
        with pytest.raises(StoreError, match="can't be reached") as caught:
            await store.check()
        assert "Kizami tries again by itself" in str(caught.value)
        with pytest.raises(StoreError, match="can't be reached"):
            store.jobs.vouch_blocking("w1", [])
        await asyncio.to_thread(own.control, "start")
        await store.check()
        store.jobs.vouch_blocking("w1", [])


@pytest.mark.parametrize(("cut", "runs"), [("before", 2), ("after", 1)])
async def test_a_commit_whose_answer_is_lost_is_asked_about(own: OwnPostgres, cut: str, runs: int) -> None:
    """The database is asked what became of it: one that was kept isn't repeated, one that wasn't is."""
    async with line_to(own.url) as line, database_at(line.url) as database:
        assert await database.write(Put(f"{cut}-first")) == f"{cut}-first"
        line.cut = cut
        put = Put(f"{cut}-cut")
        assert await database.write(put) == f"{cut}-cut"
        assert put.runs == runs
        assert [name for name in await names(database) if name.startswith(cut)] == [f"{cut}-cut", f"{cut}-first"]


async def test_a_commit_before_a_crash_of_the_server_is_told_as_unclear(own: OwnPostgres) -> None:
    """A server that crashes may give a lost transaction's number to another one, whose commit would say nothing."""

    def identity(transaction: Transaction, _: Moment) -> str:
        row = raw(transaction).execute(f"SELECT {_IDENTITY} AS identity").fetchone()
        assert row is not None
        return str(row["identity"])

    session = Session(place_of(own.url))
    lost = psycopg.OperationalError("the answer was lost")
    try:
        committed = session.run(identity, Errand.WRITE)
        session.close()
        assert session._has_committed(committed, lost)  # noqa: SLF001 - what follows on a lost answer
        session.close()
        await asyncio.to_thread(own.control, "restart")
        with pytest.raises(StoreUnclearError, match="whether it was kept can't be asked"):
            session._has_committed(committed, lost)  # noqa: SLF001 - as above
    finally:
        session.close()


async def test_an_operation_that_fails_takes_back_only_itself(migrated: str) -> None:
    async with database_at(migrated) as database:

        def fail(transaction: Transaction, moment: Moment) -> None:
            Put("taken back")(transaction, moment)
            raise KeyError("mine")

        operations: list[Write[object]] = [Put("a"), fail, Put("b"), Put("a")]
        answers = await asyncio.gather(*map(database.write, operations), return_exceptions=True)
        assert [type(answer) for answer in answers] == [str, KeyError, str, psycopg.errors.UniqueViolation] or (
            type(answers[0]) is psycopg.errors.UniqueViolation
        )
        assert await names(database) == ["a", "b"]


async def test_a_lock_that_is_not_had_in_time_is_told(migrated: str) -> None:
    async with database_at(migrated) as database:
        await database.write(Put("a"))
        with psycopg.connect(migrated) as other:
            other.execute("SELECT * FROM kizami_cursors FOR UPDATE")

            def blocked(transaction: Transaction, _: Moment) -> None:
                raw(transaction).execute("SET LOCAL lock_timeout = '20ms'")
                raw(transaction).execute("UPDATE kizami_cursors SET moved_at = 0")

            with pytest.raises(StoreBusyError, match="waiting for too long"):
                await database.write(blocked)
        await database.write(lambda transaction, _: raw(transaction).execute("UPDATE kizami_cursors SET moved_at = 0"))


async def test_a_database_that_can_only_be_read_is_told(migrated: str) -> None:
    with psycopg.connect(migrated, autocommit=True) as administrator:
        name = administrator.info.dbname
        administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreReadOnlyError, match="a standby, or set to read-only"):
        await PostgresStore(place_of(migrated)).open()


async def test_a_reader_can_not_write(migrated: str) -> None:
    async with database_at(migrated) as database:
        with pytest.raises(StoreReadOnlyError):
            await database.read(Put("a"))
        assert await names(database) == []


async def test_a_database_without_the_schema_is_refused_with_the_remedy(postgres_url: str) -> None:
    with pytest.raises(
        StoreVersionError, match=r"lacks the migration 1 \(initial\), 2 \(claims\)\. Run `kizami migrate`\."
    ):
        await PostgresStore(place_of(postgres_url)).open()
    async with database_at(postgres_url) as database:
        with pytest.raises(StoreVersionError, match="Run `kizami migrate`"):
            await database.write(Put("a"))


async def test_those_who_migrate_at_once_migrate_once(postgres_url: str) -> None:
    place = place_of(postgres_url)
    done = await asyncio.gather(*(asyncio.to_thread(migrate, place) for _ in range(4)))
    assert sorted(step.number for applied in done for step in applied) == [step.number for step in migrations()]
    assert pending(place) == ()


def from_the_future(url: str, serves_from: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO kizami_migrations (number, name, checksum, serves_from) VALUES (9999, 'later', '', %s)",
            (serves_from,),
        )


async def test_a_newer_schema_serves_old_code_as_long_as_it_says_so(migrated: str) -> None:
    from_the_future(migrated, serves_from=1)
    async with store_at(migrated) as store:
        await store.check()


async def test_a_schema_that_is_too_new_is_refused(migrated: str) -> None:
    from_the_future(migrated, serves_from=9999)
    with pytest.raises(StoreVersionError, match="migration 9999, which this version of Kizami can't work with"):
        await PostgresStore(place_of(migrated)).open()


@pytest.mark.parametrize("column", ["name", "checksum"])
async def test_a_schema_of_another_history_is_refused(migrated: str, column: str) -> None:
    with psycopg.connect(migrated) as connection:
        connection.execute(sql.SQL("UPDATE kizami_migrations SET {} = 'other'").format(sql.Identifier(column)))
    with pytest.raises(StoreVersionError, match=r"migration 1 .* that differs"):
        await PostgresStore(place_of(migrated)).open()


async def test_a_change_wakes_the_other_processes_and_not_only_its_own(migrated: str) -> None:
    async with store_at(migrated) as here, store_at(migrated) as there:
        heard_here, heard_there = asyncio.Event(), asyncio.Event()
        await here.check()
        await there.check()
        here.on_change(heard_here.set)
        there.on_change(heard_there.set)
        for heard in (heard_here, heard_there):
            heard.clear()
        await here.jobs.enqueue([new_job("a")])
        await asyncio.wait_for(asyncio.gather(heard_here.wait(), heard_there.wait()), 10)


async def test_the_heart_beats_while_every_writer_is_held_up(migrated: str) -> None:
    async with store_at(migrated) as store, database_at(migrated) as database:
        await employ(store, "w1")
        with psycopg.connect(migrated) as other:
            other.execute("LOCK TABLE kizami_cursors")
            held = [asyncio.create_task(database.write(Put(f"p{number}"))) for number in range(8)]
            await asyncio.to_thread(store.jobs.vouch_blocking, "w1", [])
        await asyncio.gather(*held)


async def test_through_a_pooler_nothing_is_left_in_a_session(own: OwnPostgres) -> None:
    with pooler(own.url) as url:
        connection = connect(place_of(url))
        assert is_pooled(connection)
        assert connection.prepare_threshold is None
        connection.close()
        direct = connect(place_of(own.url))
        assert not is_pooled(direct)
        direct.close()


async def test_through_a_pooler_other_processes_are_heard_by_looking(own: OwnPostgres) -> None:
    with pooler(own.url) as url:
        async with store_at(url) as here, store_at(url) as there:
            heard = asyncio.Event()
            there.on_change(heard.set)
            await here.jobs.enqueue([new_job("pooled")])
            await asyncio.wait_for(heard.wait(), 10)
            assert (await there.jobs.count_by_state(APP))["send"]
