"""Concurrent enqueues of one process share transactions, and each is all or nothing for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kizami.core.errors import InvalidInputError, NotFoundError
from kizami.core.options import JobOptions
from kizami.store.postgres.arrays import literal
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.postgres.store import PostgresStore
from kizami.store.protocol import JobFilter, NewJob, Store
from tests.conformance.whole_store import APP, BINDING, employ, new_job

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
