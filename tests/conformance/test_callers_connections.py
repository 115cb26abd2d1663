"""Every kind of connection that a caller may have: the job exists if and only if its transaction commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from kizami.core.errors import NotFoundError
from kizami.core.options import JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import NewJob, Store
from tests.conformance.callers import KINDS, opened
from tests.conformance.postgres_home import clear, settle_in
from tests.conformance.whole_store import APP, BINDING, TIMEOUT_MS, local_ids, new_job, take

KEYED = JobOptions(timeout_ms=TIMEOUT_MS, unique_key="k")
UNKNOWN = NewJob(APP, "nobody", "x", "{}")


@pytest.fixture(params=KINDS, ids="-".join)
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def name(kind: tuple[str, str]) -> str:
    return kind[1]


@pytest.fixture
def home(kind: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the folder of a database to which such connections lead."""
    if kind[0] == "postgres":
        url = request.getfixturevalue("postgres_home")
        clear(url)
        settle_in(tmp_path, url)
    return tmp_path


async def _job_ids(store: Store) -> list[str]:
    return local_ids(await take(store))


async def test_a_job_appears_with_the_callers_commit(whole: Store, home: Path, name: str) -> None:
    async with opened(home, name) as caller:
        (answer,) = await whole.jobs.enqueue_in(caller.connection, [new_job("a")])
        assert (answer.job_id, answer.existing) == (f"{BINDING}#0:a", False)
        assert await whole.jobs.get(APP, answer.job_id) is None
        await caller.commit()
    assert await _job_ids(whole) == ["a"]


async def test_a_job_is_gone_with_the_callers_rollback(whole: Store, home: Path, name: str) -> None:
    async with opened(home, name) as caller:
        await whole.jobs.enqueue_in(caller.connection, [new_job("a"), new_job("b", KEYED)])
        await caller.roll_back()
        await whole.jobs.enqueue_in(caller.connection, [new_job("c", KEYED)])
        await caller.commit()
    assert await _job_ids(whole) == ["c"]


async def test_what_is_refused_leaves_the_transaction_usable(whole: Store, home: Path, name: str) -> None:
    async with opened(home, name) as caller:
        await whole.jobs.enqueue_in(caller.connection, [new_job("a")])
        with pytest.raises(NotFoundError):
            await whole.jobs.enqueue_in(caller.connection, [new_job("b", KEYED), UNKNOWN])  # the key is reserved first
        (answer,) = await whole.jobs.enqueue_in(caller.connection, [new_job("c", KEYED)])
        assert not answer.existing
        await caller.commit()
    assert await _job_ids(whole) == ["a", "c"]


async def test_a_reserved_key_is_answered_with_the_job_that_has_it(whole: Store, home: Path, name: str) -> None:
    await whole.jobs.enqueue([new_job("first", KEYED)])
    async with opened(home, name) as caller:
        (answer,) = await whole.jobs.enqueue_in(caller.connection, [new_job("second", KEYED)])
        await caller.commit()
    assert (answer.job_id, answer.existing, answer.state) == (f"{BINDING}#0:first", True, JobState.SCHEDULED)
