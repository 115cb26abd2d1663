"""Limits hold over all workers: places, places of a key, tokens, pause; and nothing stays blocked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.core.dispatch import Wait
from kizami.core.options import FirstDue, Guarantee, JobOptions
from kizami.core.policy import Policy, Rate
from kizami.core.states import JobState
from kizami.store.protocol import BindingDeclaration, ClaimedJob, NewJob, Outcome, Report, Store
from tests.conformance.whole_store import (
    APP,
    BINDING,
    SILENT_MS,
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

SECOND = timedelta(seconds=1)


async def declare(store: Store, **policy: Any) -> None:
    await store.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(**policy))])


def keyed(local_id: str, key: str, priority: int = 0) -> NewJob:
    return new_job(local_id, JobOptions(priority, timeout_ms=60_000, concurrency_key=key))


async def waits(store: Store, wait: Wait) -> int:
    (diagnostics,) = await store.bindings.diagnose(APP)
    return diagnostics.waiting[wait]


async def test_no_more_run_at_once_than_the_concurrency_over_all_workers(whole: Store) -> None:
    await declare(whole, concurrency=3)
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(5)])
    first, second = await take(whole, "w1", 2), await take(whole, "w2")
    assert (local_ids(first), local_ids(second)) == (["j0", "j1"], ["j2"])
    assert await take(whole, "w3") == []
    assert not (await whole.jobs.horizon(APP, (BINDING,))).ready
    assert await waits(whole, Wait.CAPACITY) == 2
    await report(whole, completed(first[0]))
    assert local_ids(await take(whole, "w3")) == ["j3"]


async def test_two_processes_that_claim_at_once_keep_one_limit(
    whole: Store, tmp_path: Path, still_clock: StillClock
) -> None:
    await declare(whole, concurrency=7)
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(50)])
    async with whole_store(tmp_path, still_clock) as other:
        taken = await asyncio.gather(*(take(room, "w1", 3) for room in (whole, other) * 5))
    assert sum(map(len, taken)) == 7


async def test_jobs_of_one_key_run_one_after_the_other_and_other_keys_pass_them(whole: Store) -> None:
    """B049: a blocked key never blocks other keys behind it, and its jobs keep their order."""
    await declare(whole)
    names = ["a1", "a2", "b1", "a3", "free", "b2"]
    await whole.jobs.enqueue([new_job(name) if name == "free" else keyed(name, name[0]) for name in names])
    running = await take(whole)
    assert local_ids(running) == ["a1", "b1", "free"]
    assert await waits(whole, Wait.KEY) == 3
    ended = []
    while running:
        ended += local_ids(running[:1])
        await report(whole, completed(running.pop(0)))
        running += await take(whole)
        keys = [job.options.concurrency_key for job in running if job.options.concurrency_key]
        assert len(keys) == len(set(keys))
    assert ended == ["a1", "b1", "free", "a2", "b2", "a3"]


async def test_one_slot_finds_the_free_key_behind_thousands_of_a_busy_one(whole: Store) -> None:
    """B049: a claim with one slot goes on looking until it is filled."""
    await declare(whole, concurrency=10)
    await whole.jobs.enqueue([keyed(f"busy{number}", "busy", 5) for number in range(5_000)])
    assert local_ids(await take(whole, limit=1)) == ["busy0"]
    await whole.jobs.enqueue([keyed("other", "other")])
    assert local_ids(await take(whole, "w2", limit=1)) == ["other"]
    assert await waits(whole, Wait.KEY) == 4_999


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (JobState.COMPLETED, Outcome.COMPLETED),
        (JobState.FAILED, Outcome.FAILED),
        (JobState.CANCELLED, Outcome.CANCELLED),
        (JobState.STALLED, Outcome.STALLED),
        (JobState.SCHEDULED, Outcome.SNOOZED),
        (JobState.SCHEDULED, Outcome.RELEASED),
    ],
)
async def test_every_end_of_a_holder_brings_back_the_next_of_its_key(
    whole: Store, state: JobState, outcome: Outcome
) -> None:
    """B049: no slot leaks, whatever ends its holder."""
    await declare(whole)
    await whole.jobs.enqueue([keyed("a1", "a"), keyed("a2", "a")])
    (first,) = await take(whole)
    assert await take(whole, "w2") == []
    await report(whole, Report(first.key, first.claim, state, outcome, delay_ms=60_000, started_at=1, ended_at=2))
    assert local_ids(await take(whole, "w2")) == ["a2"]


async def test_a_dead_or_silent_holder_gives_its_key_back(whole: Store, still_clock: StillClock) -> None:
    """B040, B049: a slot is held by a live claim; after a takeover exactly one is free, not two."""
    await declare(whole)
    await whole.jobs.enqueue([keyed(name, "a") for name in ("a1", "a2", "a3")])
    (first,) = await take(whole, "w1")
    assert await take(whole, "w2") == []
    still_clock.move(SILENT_MS + 1)
    await whole.jobs.reap(APP, SILENT_MS)
    assert not await report(whole, completed(first))
    assert local_ids(await take(whole, "w2")) == ["a1"]
    assert await take(whole, "w3") == []
    await whole.workers.bury("w2")
    assert local_ids(await take(whole, "w3")) == ["a1"]
    assert await take(whole, "w3") == []


@pytest.mark.parametrize("lost", ["silent", "buried"])
async def test_a_holder_that_is_stalled_lets_the_next_of_its_key_start(
    whole: Store, still_clock: StillClock, lost: str
) -> None:
    """B049: also an end that nobody reported brings back the next one."""
    await declare(whole)
    once = JobOptions(timeout_ms=60_000, guarantee=Guarantee.AT_MOST_ONCE, concurrency_key="a")
    await whole.jobs.enqueue([new_job("a1", once), keyed("a2", "a")])
    assert local_ids(await take(whole, "w1")) == ["a1"]
    assert await take(whole, "w2") == []
    still_clock.move(SILENT_MS + 1)
    taken = await (whole.jobs.reap(APP, SILENT_MS) if lost == "silent" else whole.workers.bury("w1"))
    assert [one.state for one in taken] == [JobState.STALLED]
    assert local_ids(await take(whole, "w2")) == ["a2"]


@pytest.mark.parametrize("operation", ["cancel", "reschedule"])
async def test_a_job_that_was_brought_back_and_then_taken_away_passes_its_turn_on(whole: Store, operation: str) -> None:
    """B049: restarts and operators leave nothing blocked after the queue drains."""
    await declare(whole)
    await whole.jobs.enqueue([keyed(name, "a") for name in ("a1", "a2", "a3")])
    (first,) = await take(whole)
    assert await take(whole) == []
    await report(whole, completed(first))
    if operation == "cancel":
        await whole.jobs.cancel(APP, "send#0:a2")
    else:
        await whole.jobs.reschedule(APP, "send#0:a2", FirstDue(delay_ms=1_000))
    assert local_ids(await take(whole)) == ["a3"]


async def test_more_places_for_a_key_free_its_blocked_jobs(whole: Store) -> None:
    await declare(whole)
    await whole.jobs.enqueue([keyed(f"a{number}", "a") for number in range(4)])
    assert local_ids(await take(whole)) == ["a0"]
    assert await take(whole) == []
    await whole.bindings.configure(APP, BINDING, {"per_key_concurrency": 3})
    assert (await whole.jobs.horizon(APP, (BINDING,))).ready
    assert local_ids(await take(whole)) == ["a1", "a2"]
    await whole.bindings.configure(APP, BINDING, None)
    assert await take(whole) == []


async def test_a_rate_starts_a_full_bucket_and_then_as_many_as_it_refills(
    whole: Store, still_clock: StillClock
) -> None:
    """B047: retries take tokens too, and the horizon tells when the next one comes."""
    await declare(whole, rate=Rate(2, SECOND))
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(4)])
    first = await take(whole)
    assert local_ids(first) == ["j0", "j1"]
    await report(whole, failed(first[0], again=True))
    horizon = await whole.jobs.horizon(APP, (BINDING,))
    assert (horizon.ready, horizon.wake_at) == (False, still_clock.now + 500)
    assert await waits(whole, Wait.TOKENS) == 3
    still_clock.move(499)
    assert await take(whole) == []
    still_clock.move(1)
    assert local_ids(await take(whole)) == ["j0"]
    still_clock.move(60_000)
    assert local_ids(await take(whole)) == ["j2", "j3"]


async def test_a_restarted_machine_does_not_refill_the_budget(tmp_path: Path, still_clock: StillClock) -> None:
    """B047: after a reboot the bucket goes on where it was, and fills again from there."""
    async with whole_store(tmp_path, still_clock) as before:
        await declare(before, rate=Rate(1, SECOND))
        await before.jobs.enqueue([new_job(f"j{number}") for number in range(3)])
        assert len(await take(before)) == 1
    still_clock.boot = 10
    async with whole_store(tmp_path, still_clock, "boot-2") as after:
        assert await take(after) == []
        still_clock.move(1_000)
        assert len(await take(after)) == 1


async def test_a_paused_binding_starts_nothing_and_queues_up(whole: Store, still_clock: StillClock) -> None:
    await declare(whole)
    paused = await whole.bindings.pause(APP, BINDING)
    still_clock.move(5)
    assert paused.paused_at == still_clock.now - 5
    assert (await whole.bindings.pause(APP, BINDING)).paused_at == paused.paused_at
    await whole.jobs.enqueue([new_job("a"), new_job("b", binding="other")])
    assert await take(whole) == []
    assert not (await whole.jobs.horizon(APP, (BINDING,))).ready
    assert local_ids(await take(whole, bindings=("other", BINDING))) == ["b"]
    await whole.bindings.resume(APP, BINDING)
    assert local_ids(await take(whole)) == ["a"]


async def test_limits_of_shards_are_counted_apart(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=1), shards=4)])
    options = [JobOptions(partition_key=key, concurrency_key=key) for key in ("a", "b", "c", "a", "b", "c")]
    answers = await whole.jobs.enqueue([new_job(f"j{at}", one) for at, one in enumerate(options)])
    shards = {answer.job_id.partition(":")[0] for answer in answers}
    taken = await take(whole)
    assert {job.job_id.partition(":")[0] for job in taken} == shards
    assert len(taken) == len(shards)


async def test_without_aging_priority_is_strict(whole: Store, still_clock: StillClock) -> None:
    """B050: who declares it may starve the low ones, knowingly."""
    await declare(whole, aging_interval=None)
    await whole.jobs.enqueue([ranked("low", 0)])
    still_clock.move(365 * 86_400_000)
    await whole.jobs.enqueue([ranked("high", 1), ranked("high-too", 1)])
    assert local_ids(await take(whole)) == ["high", "high-too", "low"]


def ranked(local_id: str, priority: int) -> NewJob:
    return new_job(local_id, JobOptions(priority))


async def test_a_changed_aging_re_keys_what_waits(whole: Store, still_clock: StillClock) -> None:
    await declare(whole, aging_interval=None)
    await whole.jobs.enqueue([ranked("patient", 0), replace(ranked("later", 9), first_due=FirstDue(delay_ms=70_000))])
    still_clock.move(60_001)
    await whole.jobs.enqueue([ranked("fresh", 1)])
    await whole.bindings.configure(APP, BINDING, {"aging_interval": timedelta(seconds=60)})
    assert local_ids(await take(whole, limit=1)) == ["patient"]
    await whole.bindings.configure(APP, BINDING, None)
    await whole.jobs.enqueue([ranked("low", 0)])
    still_clock.move(10_000)
    assert local_ids(await take(whole)) == ["later", "fresh", "low"]


async def test_thousands_that_become_due_at_once_are_all_in_the_order(whole: Store, still_clock: StillClock) -> None:
    """A claim after a downtime sees the best of everything that came due, not of the first batch."""
    await declare(whole)
    jobs = [replace(ranked(f"j{at}", 0), first_due=FirstDue(delay_ms=1_000)) for at in range(5_000)]
    best = replace(ranked("best", 1), first_due=FirstDue(delay_ms=2_000))
    await whole.jobs.enqueue([*jobs, best])
    still_clock.move(3_000)
    assert local_ids(await take(whole, limit=2)) == ["best", "j0"]


async def test_a_claimed_job_carries_its_grace_time(whole: Store, still_clock: StillClock) -> None:
    await declare(whole, reaper_grace=timedelta(seconds=5))
    await whole.jobs.enqueue([new_job("a")])
    job: ClaimedJob = await take_one(whole)
    assert job.grace_ms == 5_000
    still_clock.move(65_000)
    assert await whole.jobs.reap(APP, 65_000) == ()
    still_clock.move(1)
    assert await whole.jobs.reap(APP, 64_999) == ()
    assert len(await whole.jobs.reap(APP, 65_000)) == 1
