"""Unique keys, required keys and shards: what an enqueue answers and what it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kizami.core.errors import InvalidInputError, NotFoundError, WrongStateError
from kizami.core.options import JobOptions
from kizami.core.sharding import shard_of
from kizami.core.states import JobState
from kizami.store.protocol import BindingDeclaration, Enqueued, FireOutcome, NewJob, Store
from tests.conformance.planned import MINUTE_MS, at_tick, defined, fire, planned_at, register, tick_job
from tests.conformance.whole_store import (
    APP,
    BINDING,
    StillClock,
    completed,
    failed,
    local_ids,
    new_job,
    report,
    sweep_all,
    take,
    take_one,
    whole_store,
)

HOUR_MS = 3_600_000


def unique(local_id: str, key: str = "k", unique_for_ms: int = HOUR_MS) -> NewJob:
    return new_job(local_id, JobOptions(timeout_ms=60_000, unique_key=key, unique_for_ms=unique_for_ms))


async def test_a_second_enqueue_finds_the_first_one_and_says_its_state(whole: Store) -> None:
    """B046: while the reservation lives, the existing job comes back, also when it has ended."""
    assert await whole.jobs.enqueue([unique("a")]) == (Enqueued("send#0:a"),)
    assert await whole.jobs.enqueue([unique("b")]) == (Enqueued("send#0:a", existing=True, state=JobState.SCHEDULED),)
    job = await take_one(whole)
    await report(whole, failed(job, again=False))
    assert await whole.jobs.enqueue([unique("c")]) == (Enqueued("send#0:a", existing=True, state=JobState.FAILED),)
    assert await take(whole) == []


async def test_a_reservation_outlives_its_job_and_ends(whole: Store, still_clock: StillClock) -> None:
    """B046: no key stays locked for ever, and none is free before its time."""
    await whole.jobs.enqueue([unique("a")])
    await report(whole, completed(await take_one(whole)))
    still_clock.move(1)
    assert await sweep_all(whole) == 1
    assert await whole.jobs.enqueue([unique("b")]) == (Enqueued("send#0:a", existing=True),)
    still_clock.move(HOUR_MS - 2)
    assert (await whole.jobs.enqueue([unique("c")]))[0].existing
    still_clock.move(1)
    assert await whole.jobs.enqueue([unique("d")]) == (Enqueued("send#0:d"),)
    assert local_ids(await take(whole)) == ["d"]


async def test_an_enqueue_that_fails_reserves_nothing(whole: Store) -> None:
    """B046: all or none covers the reservations."""
    broken = NewJob(APP, "unknown", "x", "{}")
    with pytest.raises(NotFoundError):
        await whole.jobs.enqueue([unique("a"), broken])
    assert await whole.jobs.enqueue([unique("b")]) == (Enqueued("send#0:b"),)


async def test_the_jobs_of_one_call_see_each_others_keys(whole: Store) -> None:
    answers = await whole.jobs.enqueue([unique("a"), unique("b", "other"), unique("c"), new_job("d")])
    assert [answer.job_id for answer in answers] == ["send#0:a", "send#0:b", "send#0:a", "send#0:d"]
    assert [answer.existing for answer in answers] == [False, False, True, False]
    assert local_ids(await take(whole)) == ["a", "b", "d"]


async def test_at_the_same_moment_one_of_many_enqueues_adds(
    whole: Store, tmp_path: Path, still_clock: StillClock
) -> None:
    """Check and insert are one step, over processes too."""
    async with whole_store(tmp_path, still_clock) as other:
        rooms = (whole, other) * 10
        answers = await asyncio.gather(*(room.jobs.enqueue([unique(f"j{at}")]) for at, room in enumerate(rooms)))
    assert len({answer.job_id for (answer,) in answers}) == 1
    assert [answer.existing for (answer,) in answers].count(False) == 1


async def test_the_same_job_again_keeps_its_reservation(whole: Store) -> None:
    await whole.jobs.enqueue([unique("a")])
    assert (await whole.jobs.enqueue([unique("a", "other")]))[0].existing
    assert not (await whole.jobs.enqueue([unique("b", "other")]))[0].existing


async def test_a_sweep_removes_reservations_that_have_ended(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([unique(f"j{at}", f"k{at}") for at in range(5)])
    assert (await whole.jobs.sweep(APP, 3)).reservations == 0
    still_clock.move(HOUR_MS)
    swept = [await whole.jobs.sweep(APP, 3) for _ in range(2)]
    assert [(one.reservations, one.more) for one in swept] == [(3, True), (2, False)]


async def test_an_unknown_binding_is_refused(whole: Store) -> None:
    with pytest.raises(NotFoundError, match="App shop has no binding unknown"):
        await whole.jobs.enqueue([NewJob(APP, "unknown", "a", "{}")])


async def test_who_has_no_code_enqueues_by_what_workers_declared(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, requires_unique_key=True)])
    with pytest.raises(InvalidInputError, match="has no unique_key"):
        await whole.jobs.enqueue([NewJob(APP, BINDING, "a", "{}")])
    assert await whole.jobs.enqueue([NewJob(APP, BINDING, "a", "{}", JobOptions(unique_key="k"))])


@pytest.mark.parametrize(
    "keys", [{}, {"partition_key": "a", "concurrency_key": "b"}, {"partition_key": "a", "unique_key": "b"}]
)
async def test_a_sharded_binding_refuses_keys_that_could_cross_shards(whole: Store, keys: dict[str, Any]) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, shards=4)])
    with pytest.raises(InvalidInputError):
        await whole.jobs.enqueue([new_job("a", JobOptions(**keys))])


async def test_the_number_of_shards_does_not_change_under_outstanding_jobs(whole: Store) -> None:
    """Limits and ids live in the old shards: a key would count in two of them."""
    await whole.jobs.enqueue([new_job("a")])
    with pytest.raises(WrongStateError, match="1 outstanding jobs in 1 shards"):
        await whole.bindings.declare(APP, [BindingDeclaration(BINDING, shards=4)])
    await report(whole, failed(await take_one(whole), again=False))
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, shards=4)])
    await whole.jobs.retry(APP, "send#0:a")
    assert local_ids(await take(whole)) == ["a"]


async def test_reservations_move_along_with_the_number_of_shards(whole: Store) -> None:
    await whole.jobs.enqueue([unique("a")])
    await report(whole, completed(await take_one(whole)))
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, shards=4)])
    again = JobOptions(unique_key="k", partition_key="k")
    (answer,) = await whole.jobs.enqueue([new_job("b", again)])
    assert (answer.existing, answer.job_id) == (True, "send#0:a")
    fresh = JobOptions(unique_key="other", partition_key="other")
    (added,) = await whole.jobs.enqueue([new_job("c", fresh)])
    assert added == Enqueued(f"send#{shard_of('other', 4)}:c")


@pytest.mark.parametrize("case", ["unknown binding", "missing key"])
async def test_a_tick_whose_binding_refuses_its_job_is_settled_as_failed(
    whole: Store, still_clock: StillClock, case: str
) -> None:
    """B068: such a tick is not owed for ever, and its schedule goes on."""
    await register(whole, defined())
    if case == "missing key":
        await whole.bindings.declare(APP, [BindingDeclaration(BINDING, requires_concurrency_key=True)])
    planned = await planned_at(whole)
    still_clock.move(planned - still_clock.now)
    record = await fire(whole, replace(at_tick(planned), job=replace(tick_job(), declaration=None)))
    assert (record.outcome, record.job_id) == (FireOutcome.FAILED, None)
    assert BINDING in (record.reason or "")
    assert await planned_at(whole) == planned + MINUTE_MS
