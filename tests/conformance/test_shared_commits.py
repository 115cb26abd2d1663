"""Concurrent enqueues of one process share transactions, and each is all or nothing for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kizami.core.errors import InvalidInputError, NotFoundError, WrongStateError
from kizami.core.options import JobOptions
from kizami.core.policy import Policy
from kizami.core.states import JobState
from kizami.store.postgres.arrays import literal
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.postgres.store import PostgresStore
from kizami.store.protocol import BindingDeclaration, JobFilter, NewJob, Store
from tests.conformance.whole_store import (
    APP,
    BINDING,
    StillClock,
    completed,
    employ,
    local_ids,
    new_job,
    report,
    take,
    take_one,
)

CALLERS = 32
STRANGER = NewJob(APP, "nobody", "stranger", "{}")


async def stored(store: Store) -> list[str]:
    page = await store.jobs.list(JobFilter(APP))
    return sorted(job.job_id.partition(":")[2] for job in page.jobs)


async def test_one_of_many_that_is_refused_takes_back_only_itself(whole: Store) -> None:
    calls = [[new_job(f"a{number}"), new_job(f"b{number}")] for number in range(6)]
    calls[3] = [new_job("never"), STRANGER]
    answers = await asyncio.gather(*map(whole.jobs.enqueue, calls), return_exceptions=True)
    assert [type(answer) for answer in answers] == [tuple] * 3 + [NotFoundError] + [tuple] * 2
    assert await stored(whole) == sorted(f"{letter}{number}" for letter in "ab" for number in (0, 1, 2, 4, 5))


async def test_many_callers_with_the_same_job_or_key_add_it_once(whole: Store) -> None:
    same = [new_job("same")] * 8
    keyed = [NewJob(APP, BINDING, f"k{number}", "{}", JobOptions(unique_key="k")) for number in range(8)]
    answers = await asyncio.gather(*(whole.jobs.enqueue([job]) for job in [*same, *keyed]))
    assert sum(not answer.existing for (answer,) in answers[:8]) == 1
    assert sum(not answer.existing for (answer,) in answers[8:]) == 1
    assert len({answer.job_id for (answer,) in answers}) == 2


async def test_callers_that_wait_together_share_a_commit(postgres_url: str) -> None:
    migrate(place_of(postgres_url))
    store = PostgresStore(place_of(postgres_url))
    await store.open()
    try:
        await employ(store, "w1")
        await asyncio.gather(*(store.jobs.enqueue([new_job(f"j{number}")]) for number in range(CALLERS)))
    finally:
        await store.close()
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT xmin::text) FROM kizami_jobs").fetchone()
    assert found is not None
    assert found[0] == CALLERS
    assert found[1] <= CALLERS // 4


@pytest.fixture(scope="module")
def connection(postgres_server: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(postgres_server, autocommit=True) as opened:
        yield opened


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.none() | TEXTS, min_size=1))
@example(["", "NULL", None, "null", '"', "\\", "{,}", " a ", "\n", "é"])
@example(["None"])
def test_a_column_of_texts_arrives_as_it_was(
    connection: psycopg.Connection[tuple[object, ...]], column: list[str | None]
) -> None:
    assert connection.execute("SELECT %s::text[]", (literal(column),)).fetchone() == (column,)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_a_column_of_whole_numbers_arrives_as_it_was(
    connection: psycopg.Connection[tuple[object, ...]], column: list[int | None]
) -> None:
    assert connection.execute("SELECT %s::bigint[]", (literal(column),)).fetchone() == (column,)


@given(st.lists(st.none() | st.floats(allow_nan=False), min_size=1))
def test_a_column_of_fractions_arrives_as_it_was(
    connection: psycopg.Connection[tuple[object, ...]], column: list[float | None]
) -> None:
    assert connection.execute("SELECT %s::float8[]", (literal(column),)).fetchone() == (column,)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_database_keeps_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"U\+"):
        literal(["fine", text])
    with pytest.raises(InvalidInputError, match=r"U\+"):
        literal([None, text])


async def test_a_report_and_the_next_claim_share_a_commit(postgres_url: str) -> None:
    migrate(place_of(postgres_url))
    store = PostgresStore(place_of(postgres_url))
    await store.open()
    try:
        await employ(store, "w1")
        await store.jobs.enqueue([new_job("first"), new_job("second")])
        first = await take_one(store)
        landed, (second,) = await asyncio.gather(store.jobs.report([completed(first)]), take(store, limit=1))
        assert landed == (True,)
    finally:
        await store.close()
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT state, xmin::text FROM kizami_jobs ORDER BY key").fetchall()
    assert [row[0] for row in rows] == ["COMPLETED", "QUEUED"]
    assert rows[0][1] == rows[1][1]
    assert second.job_id.endswith("second")


async def test_a_report_that_is_refused_takes_no_claim_with_it(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("first"), new_job("second")])
    first = await take_one(whole)
    wrong = completed(first)._replace(state=JobState.QUEUED)
    refused, taken = await asyncio.gather(whole.jobs.report([wrong]), take(whole, limit=1), return_exceptions=True)
    assert isinstance(refused, WrongStateError)
    assert [job.job_id.partition(":")[2] for job in taken] == ["second"]  # type: ignore[union-attr]  # it isn't one
    assert await report(whole, completed(first))


async def test_a_job_added_alone_notices_that_its_binding_has_changed(whole: Store) -> None:
    """What is remembered of a binding is never the last word."""
    await whole.jobs.enqueue([new_job("before", JobOptions(priority=5))])
    calm = BindingDeclaration(BINDING, Policy(concurrency=100, aging_interval=None))
    await whole.bindings.declare(APP, [calm])
    await whole.jobs.enqueue([new_job("low")])
    await whole.jobs.enqueue([new_job("high", JobOptions(priority=1))])
    await whole.jobs.enqueue([new_job("low")])
    assert local_ids(await take(whole)) == ["before", "high", "low"]


async def test_a_job_added_alone_waits_for_its_time_and_finds_itself(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job("now")])
    await whole.jobs.enqueue([new_job("later", delay_ms=5_000)])
    again = await whole.jobs.enqueue([new_job("later", delay_ms=9_000)])
    assert again[0].existing
    assert local_ids(await take(whole)) == ["now"]
    still_clock.move(4_999)
    assert await take(whole) == []
    still_clock.move(1)
    assert local_ids(await take(whole)) == ["later"]


async def test_a_job_added_alone_whose_connection_is_cut_is_there_once_and_is_new(postgres_url: str) -> None:
    migrate(place_of(postgres_url))
    store = PostgresStore(place_of(postgres_url))
    await store.open()
    try:
        await employ(store, "w1")
        await store.jobs.enqueue([new_job("first")])
        await store.jobs.enqueue([new_job("second")])
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        (answer,) = await store.jobs.enqueue([new_job("third")])
        assert not answer.existing
        assert await stored(store) == ["first", "second", "third"]
    finally:
        await store.close()
