"""Workers of two processes at the same shards at once: limits hold, and nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.core.options import JobOptions
from kizami.core.policy import Policy
from kizami.core.states import JobState
from kizami.store.protocol import BindingDeclaration, Heartbeat, JobFilter, Store
from tests.conformance.whole_store import APP, BINDING, StillClock, completed, failed, new_job, seen, take, whole_store

CONCURRENCY, PER_KEY, KEYS, JOBS = 5, 1, 7, 120


@pytest.fixture
async def other(whole: Store, tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Store]:
    """Give the same database as another process sees it."""
    del whole
    async with whole_store(tmp_path, still_clock) as opened:
        yield opened


class Watch:
    """What runs at this moment, by what the workers know."""

    def __init__(self) -> None:
        self.keys: Counter[str | None] = Counter()
        self.most = 0
        self.most_of_a_key = 0
        self.ended: list[str] = []

    def start(self, key: str | None) -> None:
        self.keys[key] += 1
        self.most = max(self.most, self.keys.total())
        self.most_of_a_key = max(self.most_of_a_key, *(count for name, count in self.keys.items() if name), 0)

    def end(self, key: str | None) -> None:
        self.keys[key] -= 1


async def work(store: Store, worker_id: str, watch: Watch, turns: asyncio.Semaphore) -> None:
    """Claim and report until everything has ended; every fifth attempt fails once."""
    while len(watch.ended) < JOBS:
        async with turns:
            jobs = await take(store, worker_id, limit=3)
        for job in jobs:
            watch.start(job.options.concurrency_key)
        await asyncio.to_thread(bool)
        for job in jobs:
            again = job.attempt == 1 and int(job.job_id.rpartition("j")[2]) % 5 == 0
            watch.end(job.options.concurrency_key)  # before the report: from there on another may start
            answers = await store.jobs.report([failed(job, again=True) if again else completed(job)])
            assert answers == (True,)
            if not again:
                watch.ended.append(job.job_id)


async def recount(store: Store) -> dict[JobState, int]:
    """Count jobs by looking at each."""
    found: Counter[JobState] = Counter()
    before = None
    while True:
        page = await store.jobs.list(JobFilter(APP, before=before, limit=200))
        found.update(job.state for job in page.jobs)
        if page.next_cursor is None:
            return dict(found)
        before = page.next_cursor


async def test_limits_hold_and_every_job_ends(whole: Store, other: Store) -> None:
    policy = Policy(concurrency=CONCURRENCY, per_key_concurrency=PER_KEY)
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, policy)])
    jobs = [
        new_job(f"j{number}", JobOptions(concurrency_key=f"k{number % KEYS}" if number % 3 else None))
        for number in range(JOBS)
    ]
    await asyncio.gather(*(store.jobs.enqueue(jobs[at::4]) for at, store in enumerate((whole, other, whole, other))))
    watch, turns = Watch(), asyncio.Semaphore(4)
    stores = (whole, other, whole)
    await asyncio.gather(*(work(stores[number], f"w{number + 1}", watch, turns) for number in range(3)))
    assert sorted(watch.ended) == sorted(f"{BINDING}#0:j{number}" for number in range(JOBS))
    assert (watch.most <= CONCURRENCY, watch.most_of_a_key) == (True, PER_KEY)
    assert await whole.jobs.count_by_state(APP) == {BINDING: await recount(whole)}


async def test_of_many_enqueues_with_one_unique_key_one_adds_a_job(whole: Store, other: Store) -> None:
    calls = [
        store.jobs.enqueue([new_job(f"{name}{number}", JobOptions(unique_key="one"))])
        for number in range(8)
        for name, store in (("a", whole), ("b", other))
    ]
    answers = [answer for (answer,) in await asyncio.gather(*calls)]
    assert len({answer.job_id for answer in answers}) == 1
    assert [answer.existing for answer in answers].count(False) == 1
    assert await recount(whole) == {JobState.SCHEDULED: 1}


async def test_of_many_enqueues_of_one_id_one_adds_a_job(whole: Store, other: Store) -> None:
    calls = [store.jobs.enqueue([new_job(f"a{at}") for at in range(20)]) for store in (whole, other) for _ in range(4)]
    answers = await asyncio.gather(*calls)
    assert sum(not answer.existing for each in answers for answer in each) == 20
    assert await whole.jobs.count_by_state(APP) == {BINDING: {JobState.SCHEDULED: 20}}


async def test_a_cancel_beside_a_claim_leaves_one_of_them(whole: Store, other: Store) -> None:
    names = [f"a{number}" for number in range(24)]
    await whole.jobs.enqueue([new_job(name, JobOptions(concurrency_key=name)) for name in names])
    cancels = [other.jobs.cancel(APP, f"{BINDING}#0:{name}") for name in names]
    claims = [take(whole, limit=4) for _ in range(6)]
    answers = await asyncio.gather(*cancels, *claims, return_exceptions=True)
    refused = sum(isinstance(answer, Exception) for answer in answers[: len(cancels)])
    claimed = [job for jobs in answers[len(cancels) :] if isinstance(jobs, list) for job in jobs]
    assert len(claimed) == refused
    for job in claimed:
        assert (await seen(whole, job.job_id)).state is JobState.QUEUED
    assert await whole.jobs.count_by_state(APP) == {BINDING: await recount(whole)}


async def test_a_reap_beside_a_report_counts_each_job_once(whole: Store, other: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job(f"a{number}", JobOptions(concurrency_key=f"k{number}")) for number in range(12)])
    claimed = await take(whole, limit=12)
    still_clock.move(24 * 3_600_000)
    reports = [whole.jobs.report([completed(job)]) for job in claimed]
    reap = other.jobs.reap(APP, 24 * 3_600_000)
    answers = await asyncio.gather(*reports[:6], reap, *reports[6:])
    taken = answers[6]
    landed = sum(answer == (True,) for answer in (*answers[:6], *answers[7:]))
    assert landed + len(taken) == 12
    assert await whole.jobs.count_by_state(APP) == {BINDING: await recount(whole)}


async def test_a_sign_of_life_beside_a_reap_keeps_the_job(whole: Store, other: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job(f"a{number}") for number in range(12)])
    claimed = await take(whole, limit=12)
    still_clock.move(24 * 3_600_000)
    beats = [whole.jobs.heartbeat([Heartbeat(job.key, job.claim, 1_000)]) for job in claimed]
    answers = await asyncio.gather(*beats[:6], other.jobs.reap(APP, 24 * 3_600_000), *beats[6:])
    kept = sum(answer == (True,) for answer in (*answers[:6], *answers[7:]))
    assert kept + len(answers[6]) == 12
