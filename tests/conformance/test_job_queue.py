"""Jobs come in, in order and once, and go out by effective priority, each to one worker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kizami.core.errors import InvalidInputError
from kizami.core.options import FirstDue, JobOptions
from kizami.core.sharding import shard_of
from kizami.core.states import JobState
from kizami.store.protocol import BindingDeclaration, Enqueued, NewJob, Store
from tests.conformance.whole_store import (
    APP,
    BINDING,
    SILENT_MS,
    START_MS,
    StillClock,
    completed,
    failed,
    local_ids,
    new_job,
    report,
    take,
    take_one,
    whole_store,
)

AGING_MS = 60_000


def ranked(local_id: str, priority: int) -> NewJob:
    return new_job(local_id, JobOptions(priority=priority))


async def test_jobs_enqueued_together_keep_their_order(whole: Store) -> None:
    names = [f"j{number}" for number in range(50)]
    answers = await whole.jobs.enqueue([new_job(name) for name in names])
    assert answers == tuple(Enqueued(f"{BINDING}#0:{name}") for name in names)
    assert local_ids(await take(whole, limit=50)) == names


async def test_an_id_that_exists_is_answered_and_not_added(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("a")])
    again = await whole.jobs.enqueue([new_job("b"), new_job("a"), new_job("b")])
    assert [answer.existing for answer in again] == [False, True, True]
    assert local_ids(await take(whole)) == ["a", "b"]


async def test_jobs_are_enqueued_all_or_none(whole: Store) -> None:
    broken = NewJob(APP, BINDING, "c", "{}", JobOptions(), FirstDue(run_at_ms=2**63))
    with pytest.raises(InvalidInputError, match="out of range"):
        await whole.jobs.enqueue([new_job("a"), new_job("b"), broken])
    assert await take(whole) == []


async def test_a_higher_priority_goes_first_then_the_longer_wait(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([ranked("low", -1), ranked("first", 0), ranked("second", 0), ranked("high", 5)])
    still_clock.move(1)
    await whole.jobs.enqueue([ranked("third", 0), ranked("highest", 2**31 - 1), ranked("lowest", -(2**31))])
    expected = ["highest", "high", "first", "second", "third", "low", "lowest"]
    assert local_ids(await take(whole)) == expected


async def test_a_minute_of_waiting_is_worth_one_priority_point(whole: Store, still_clock: StillClock) -> None:
    """B050: a low job starts within the aging bound, however many high ones keep coming."""
    await whole.jobs.enqueue([ranked("patient", 0)])
    still_clock.move(2 * AGING_MS - 1)
    await whole.jobs.enqueue([ranked("still-ahead", 2)])
    still_clock.move(1)
    await whole.jobs.enqueue([ranked("too-late", 2), ranked("ahead", 3)])
    assert local_ids(await take(whole)) == ["ahead", "still-ahead", "patient", "too-late"]


async def test_a_recovered_job_keeps_its_place_before_fresh_ones(whole: Store, still_clock: StillClock) -> None:
    """B050: one order over fresh, retried and recovered work."""
    await whole.jobs.enqueue([ranked("lost", 100), ranked("retried", 50)])
    _, second = await take(whole, limit=2)
    await report(whole, failed(second, again=True))
    still_clock.move(SILENT_MS + 1)
    await whole.jobs.enqueue([ranked(f"fresh{number}", 0) for number in range(100)])
    await whole.jobs.reap(APP, SILENT_MS)
    assert local_ids(await take(whole, limit=3)) == ["lost", "retried", "fresh0"]


async def test_two_workers_share_no_job(whole: Store, tmp_path: Path, still_clock: StillClock) -> None:
    """Claims from two processes at the same moment are disjoint and together complete."""
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(200)])
    async with whole_store(tmp_path, still_clock) as other:
        taken = await asyncio.gather(*(take(room, "w1", 20) for room in (whole, other) * 6))
    names = [name for jobs in taken for name in local_ids(jobs)]
    assert sorted(names) == sorted({f"j{number}" for number in range(200)})


async def test_a_claim_takes_no_more_than_its_limit(whole: Store) -> None:
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(5)])
    assert [len(await take(whole, limit=limit)) for limit in (0, 2, 2, 2)] == [0, 2, 2, 1]


async def test_jobs_of_other_bindings_and_apps_are_left_alone(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("a", binding="other"), new_job("b", app="elsewhere")])
    assert await take(whole) == []
    horizon = await whole.jobs.horizon(APP, (BINDING,))
    assert (horizon.ready, horizon.wake_at) == (False, None)
    assert local_ids(await take(whole, bindings=("other", BINDING))) == ["a"]


async def test_every_shard_is_claimed_from(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, shards=12)])
    jobs = [new_job(f"j{key}", JobOptions(partition_key=key)) for key in "abc"]
    answers = await whole.jobs.enqueue(jobs)
    assert [answer.job_id for answer in answers] == [f"send#{shard_of(key, 12)}:j{key}" for key in "abc"]
    assert [job.job_id for job in await take(whole)] == [answer.job_id for answer in answers]


async def test_a_delayed_job_waits_for_its_time(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job("later", delay_ms=5_000)])
    horizon = await whole.jobs.horizon(APP, (BINDING,))
    assert (horizon.ready, horizon.wake_at) == (False, START_MS + 5_000)
    still_clock.move(4_999)
    assert await take(whole) == []
    still_clock.move(1)
    assert (await whole.jobs.horizon(APP, (BINDING,))).ready
    assert local_ids(await take(whole)) == ["later"]


async def test_run_at_may_be_past_or_far_in_the_future(whole: Store) -> None:
    year_9999 = 253_402_300_799_999
    past = replace(new_job("past"), first_due=FirstDue(run_at_ms=0))
    far = replace(new_job("far"), first_due=FirstDue(run_at_ms=year_9999))
    await whole.jobs.enqueue([new_job("now"), far, past])
    assert local_ids(await take(whole)) == ["now", "past"]
    assert (await whole.jobs.horizon(APP, (BINDING,))).wake_at == year_9999


async def test_a_waiting_job_takes_its_place_by_when_it_became_due(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job("b", delay_ms=2_000), new_job("a", delay_ms=1_000)])
    still_clock.move(3_000)
    await whole.jobs.enqueue([new_job("c")])
    assert local_ids(await take(whole)) == ["a", "b", "c"]


async def test_counts_by_state_and_binding(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("a"), new_job("b"), new_job("c", binding="other")])
    await report(whole, completed(await take_one(whole)))
    assert await whole.jobs.count_by_state(APP) == {
        BINDING: {JobState.COMPLETED: 1, JobState.SCHEDULED: 1},
        "other": {JobState.SCHEDULED: 1},
    }
