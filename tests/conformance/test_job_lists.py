"""Lists find what their filter says, in its order, page by page; many are retried or cancelled at once."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kizami.core.errors import GoneError, InvalidInputError, NotFoundError, WrongStateError
from kizami.core.options import FirstDue, JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import Bulk, BulkOperation, JobFilter, JobSort, NewJob, Store
from tests.conformance.whole_store import (
    APP,
    START_MS,
    StillClock,
    completed,
    failed,
    local_ids,
    new_job,
    report,
    seen,
    sweep_all,
    take,
    take_one,
)

ALL = JobFilter(APP)


async def names(store: Store, wanted: JobFilter, limit: int = 3) -> list[str]:
    """Return the local ids of a list, read page by page."""
    found: list[str] = []
    cursor: str | None = None
    for _ in range(50):
        page = await store.jobs.list(replace(wanted, before=cursor, limit=limit))
        found += [job.job_id.partition(":")[2] for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError(found)


async def fill(store: Store, clock: StillClock) -> None:
    """Make ten jobs, one a second: c0 c1 COMPLETED, f2 f3 FAILED, x4 CANCELLED, q5 QUEUED, r6 k7 u8 d9 SCHEDULED."""
    options = {"k7": JobOptions(concurrency_key="key"), "u8": JobOptions(unique_key="only")}
    for name in ("c0", "c1", "f2", "f3", "x4", "q5", "r6", "k7", "u8", "d9"):
        await store.jobs.enqueue([new_job(name, options.get(name), delay_ms=60_000 if name == "d9" else None)])
        clock.move(1_000)
    await store.jobs.cancel(APP, "send#0:x4")
    clock.move(1_000)
    ended = await take(store, limit=5)
    assert local_ids(ended) == ["c0", "c1", "f2", "f3", "q5"]
    for job in reversed(ended[:4]):
        await report(store, completed(job) if ":c" in job.job_id else failed(job, again=False))
        clock.move(1_000)


CASES: dict[str, tuple[JobFilter, str]] = {
    "all": (ALL, "d9 u8 k7 r6 q5 x4 f3 f2 c1 c0"),
    "oldest first": (replace(ALL, oldest_first=True), "c0 c1 f2 f3 x4 q5 r6 k7 u8 d9"),
    "one state": (JobFilter(APP, (JobState.SCHEDULED,)), "d9 u8 k7 r6"),
    "two states": (JobFilter(APP, (JobState.QUEUED, JobState.FAILED)), "q5 f3 f2"),
    "no such state": (JobFilter(APP, (JobState.RUNNING,)), ""),
    "binding": (JobFilter(APP, binding="send"), "d9 u8 k7 r6 q5 x4 f3 f2 c1 c0"),
    "other binding": (JobFilter(APP, binding="other"), ""),
    "other app": (JobFilter("elsewhere"), ""),
    "id": (JobFilter(APP, job_id="send#0:f2"), "f2"),
    "id of another binding": (JobFilter(APP, binding="other", job_id="send#0:f2"), ""),
    "id and state": (JobFilter(APP, (JobState.COMPLETED,), job_id="send#0:f2"), ""),
    "unique key": (JobFilter(APP, unique_key="only"), "u8"),
    "concurrency key": (JobFilter(APP, concurrency_key="key"), "k7"),
    "created from": (JobFilter(APP, created_from=START_MS + 6_000), "d9 u8 k7 r6"),
    "created range": (JobFilter(APP, created_from=START_MS + 1_000, created_to=START_MS + 3_000), "f2 c1"),
    "state and range": (JobFilter(APP, (JobState.FAILED,), created_to=START_MS + 3_000), "f2"),
    "latest ended first": (replace(ALL, sort=JobSort.ENDED), "c0 c1 f2 f3 x4"),
    "first ended": (replace(ALL, sort=JobSort.ENDED, oldest_first=True), "x4 f3 f2 c1 c0"),
    "ended and state": (JobFilter(APP, (JobState.CANCELLED, JobState.FAILED), sort=JobSort.ENDED), "f2 f3 x4"),
    "due": (replace(ALL, sort=JobSort.DUE), "d9"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_a_list_finds_what_its_filter_says(whole: Store, still_clock: StillClock, case: str, limit: int) -> None:
    """B073: keyset paging; every page size finds each job once."""
    await fill(whole, still_clock)
    wanted, expected = CASES[case]
    assert await names(whole, wanted, limit) == expected.split()


async def test_jobs_of_the_same_millisecond_have_an_order_too(whole: Store) -> None:
    await whole.jobs.enqueue([new_job(f"j{number}", delay_ms=1_000) for number in range(7)])
    assert await names(whole, replace(ALL, sort=JobSort.DUE, oldest_first=True), 2) == [f"j{at}" for at in range(7)]
    for number in range(7):
        await whole.jobs.cancel(APP, f"send#0:j{number}")
    assert await names(whole, replace(ALL, sort=JobSort.ENDED), 2) == [f"j{at}" for at in reversed(range(7))]


@pytest.mark.parametrize("sort", JobSort)
@pytest.mark.parametrize("cursor", ["x", "1.2.3", "-1", "9" * 19, "9" * 19 + ".1", "1", "1.1"])
async def test_a_cursor_of_another_list_is_refused(whole: Store, sort: JobSort, cursor: str) -> None:
    """B058: digits beyond 64 bits are refused, not passed on."""
    fits = cursor == "1" if sort is JobSort.CREATED else cursor == "1.1"
    wanted = JobFilter(APP, before=cursor, sort=sort)
    if fits:
        assert (await whole.jobs.list(wanted)).jobs == ()
        return
    with pytest.raises(InvalidInputError):
        await whole.jobs.list(wanted)


async def test_the_keys_of_a_job_are_shown(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("a", JobOptions(concurrency_key="c", unique_key="u", partition_key="p"))])
    job = await seen(whole, "send#0:a")
    assert (job.concurrency_key, job.unique_key, job.partition_key) == ("c", "u", "p")
    claimed = await take_one(whole)
    assert claimed.options == JobOptions(concurrency_key="c", unique_key="u", partition_key="p")


async def test_a_rescheduled_job_keeps_its_id_and_its_reservation(whole: Store, still_clock: StillClock) -> None:
    unique = JobOptions(unique_key="k")
    await whole.jobs.enqueue([new_job("a", unique, delay_ms=5_000), new_job("b")])
    await whole.jobs.reschedule(APP, "send#0:a", FirstDue(delay_ms=1_000))
    assert (await seen(whole, "send#0:a")).due_at == START_MS + 1_000
    assert (await whole.jobs.enqueue([new_job("c", unique)]))[0].job_id == "send#0:a"
    await whole.jobs.reschedule(APP, "send#0:b", FirstDue(run_at_ms=START_MS + 2_000))
    assert await take(whole) == []
    still_clock.move(2_000)
    assert local_ids(await take(whole)) == ["a", "b"]
    with pytest.raises(WrongStateError, match="is QUEUED"):
        await whole.jobs.reschedule(APP, "send#0:a", FirstDue())


@pytest.mark.parametrize("due_ms", [2**63 - 1, 10**30])
async def test_a_due_time_beyond_all_calendars_is_refused(whole: Store, due_ms: int) -> None:
    """B058: the caller's mistake, not a crash."""
    far = replace(new_job("a"), first_due=FirstDue(run_at_ms=due_ms))
    with pytest.raises(InvalidInputError, match="out of range"):
        await whole.jobs.enqueue([far])
    await whole.jobs.enqueue([new_job("a")])
    with pytest.raises(InvalidInputError, match="out of range"):
        await whole.jobs.reschedule(APP, "send#0:a", FirstDue(run_at_ms=due_ms))


def timed(at_ms: int, number: int) -> NewJob:
    return new_job(f"{at_ms:012x}{number:016x}")


async def test_a_job_that_retention_removed_is_gone_and_one_that_never_was_is_not_found(
    whole: Store, still_clock: StillClock
) -> None:
    """Ids carry the time of their creation, so what is older than the youngest removed job may be called gone."""
    (old,) = await whole.jobs.enqueue([timed(START_MS, 1)])
    await report(whole, completed(await take_one(whole)))
    still_clock.move(1)
    await sweep_all(whole)
    for operate in (whole.jobs.retry, whole.jobs.cancel):
        with pytest.raises(GoneError, match="is gone"):
            await operate(APP, old.job_id)
    with pytest.raises(NotFoundError):
        await whole.jobs.retry(APP, f"send#0:{START_MS + 1:012x}{1:016x}")
    with pytest.raises(NotFoundError):
        await whole.jobs.retry(APP, "send#0:named-by-hand")


async def test_a_bulk_operation_goes_on_past_the_jobs_that_refuse(whole: Store, still_clock: StillClock) -> None:
    await fill(whole, still_clock)
    ids = ("send#0:f2", "send#0:c0", "send#0:nothing", "no id", "send#0:f3")
    answer = await whole.jobs.bulk(Bulk(APP, BulkOperation.RETRY, ids))
    assert answer.done == ("send#0:f2", "send#0:f3")
    assert [(one.job_id, one.code) for one in answer.refused] == [
        ("send#0:c0", "wrong_state"),
        ("send#0:nothing", "not_found"),
        ("no id", "invalid_input"),
    ]
    assert (await seen(whole, "send#0:f2")).state is JobState.SCHEDULED


async def test_a_bulk_operation_by_filter_says_how_many_remain(whole: Store) -> None:
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(5)])
    cancel = Bulk(APP, BulkOperation.CANCEL, wanted=JobFilter(APP, binding="send"), limit=2)
    answers = [await whole.jobs.bulk(cancel) for _ in range(4)]
    assert [len(answer.done) for answer in answers] == [2, 2, 1, 0]
    assert [(answer.remaining, answer.remaining_exact) for answer in answers] == [
        (3, True),
        (1, True),
        (0, True),
        (0, True),
    ]
    assert answers[0].done == ("send#0:j0", "send#0:j1")


@pytest.mark.parametrize(
    "bulk",
    [
        Bulk(APP, BulkOperation.CANCEL),
        Bulk(APP, BulkOperation.CANCEL, ("send#0:a",), ALL),
        Bulk(APP, BulkOperation.CANCEL, ("send#0:a",) * 201),
        Bulk(APP, BulkOperation.CANCEL, wanted=ALL, limit=201),
        Bulk(APP, BulkOperation.RETRY, wanted=JobFilter(APP, (JobState.COMPLETED,))),
    ],
)
async def test_a_bulk_operation_that_makes_no_sense_is_refused(whole: Store, bulk: Bulk) -> None:
    with pytest.raises(InvalidInputError):
        await whole.jobs.bulk(bulk)


async def test_the_two_retention_times_of_each_binding_are_kept_apart(whole: Store, still_clock: StillClock) -> None:
    """B067: bounded batches, per binding; the counts follow."""
    await fill(whole, still_clock)
    counts = await whole.jobs.count_by_state(APP)
    assert counts["send"][JobState.FAILED] == 2
    still_clock.move(6 * 86_400_000)
    assert (await whole.jobs.sweep(APP, 100)).jobs == 0
    still_clock.move(86_400_000)
    swept = [(await whole.jobs.sweep(APP, 2)).jobs for _ in range(4)]
    assert swept == [2, 2, 1, 0]
    left = (await whole.jobs.count_by_state(APP))["send"]
    assert left == {JobState.QUEUED: 1, JobState.SCHEDULED: 4}


def test_every_filter_is_tried_with_every_order() -> None:
    """The cases above would miss a combination nobody thought of; this one counts the sorts."""
    tried = {(wanted.sort, wanted.oldest_first) for wanted, _ in CASES.values()}
    assert tried >= set(itertools.product((JobSort.CREATED, JobSort.ENDED), (True, False)))
