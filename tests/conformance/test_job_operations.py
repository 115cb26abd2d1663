"""What operators do and see: retry, cancel, list, sweep."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kizami.core.errors import InvalidInputError, NotFoundError, WrongStateError
from kizami.core.options import JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import JobFilter, Outcome, Store
from tests.conformance.whole_store import (
    APP,
    StillClock,
    completed,
    failed,
    new_job,
    report,
    seen,
    sweep_all,
    take,
    take_one,
)

DAY_MS = 86_400_000
DAY = timedelta(days=1)


async def fail_for_good(store: Store, name: str = "a", max_attempts: int = 2) -> str:
    (answer,) = await store.jobs.enqueue([new_job(name, JobOptions(max_attempts=max_attempts))])
    for attempt in range(1, max_attempts + 1):
        await report(store, failed(await take_one(store), again=attempt < max_attempts))
    return answer.job_id


async def test_a_manual_retry_allows_max_attempts_more_and_keeps_the_log(whole: Store) -> None:
    job_id = await fail_for_good(whole)
    await whole.jobs.retry(APP, job_id)
    job = await take_one(whole)
    assert (job.attempt, job.attempts_allowed, job.retries) == (3, 4, 0)
    await report(whole, completed(job))
    found = await seen(whole, job_id)
    assert [line.outcome for line in found.attempts] == [Outcome.FAILED, Outcome.FAILED, Outcome.COMPLETED]


async def test_a_report_from_before_a_manual_retry_changes_nothing(whole: Store) -> None:
    job_id = await fail_for_good(whole, max_attempts=1)
    await whole.jobs.retry(APP, job_id)
    job = await take_one(whole)
    stale = completed(job)
    await report(whole, failed(job, again=False))
    await whole.jobs.retry(APP, job_id)
    assert not await report(whole, stale)
    assert (await seen(whole, job_id)).state is JobState.SCHEDULED


@pytest.mark.parametrize("operation", ["retry", "cancel"])
async def test_an_operation_in_the_wrong_state_says_which(whole: Store, operation: str) -> None:
    (answer,) = await whole.jobs.enqueue([new_job("a")])
    await report(whole, completed(await take_one(whole)))
    with pytest.raises(WrongStateError, match="is COMPLETED") as caught:
        await getattr(whole.jobs, operation)(APP, answer.job_id)
    assert caught.value.facts == {"job_id": answer.job_id, "state": "COMPLETED"}
    assert caught.value.remedy


async def test_a_job_that_has_not_ended_is_not_retried(whole: Store) -> None:
    (answer,) = await whole.jobs.enqueue([new_job("a")])
    with pytest.raises(WrongStateError, match="is SCHEDULED"):
        await whole.jobs.retry(APP, answer.job_id)
    job = await take_one(whole)
    with pytest.raises(WrongStateError, match="is QUEUED"):
        await whole.jobs.retry(APP, answer.job_id)
    assert await report(whole, completed(job))


@pytest.mark.parametrize("operation", ["retry", "cancel"])
async def test_an_operation_on_no_job_says_so(whole: Store, operation: str) -> None:
    with pytest.raises(NotFoundError, match="There is no job send#0:gone"):
        await getattr(whole.jobs, operation)(APP, "send#0:gone")
    with pytest.raises(InvalidInputError, match="is not a job id"):
        await getattr(whole.jobs, operation)(APP, "send:gone")
    assert await whole.jobs.get(APP, "send#0:gone") is None


async def test_a_cancelled_job_is_not_claimed(whole: Store) -> None:
    now, later = await whole.jobs.enqueue([new_job("a"), new_job("b", delay_ms=1_000)])
    for answer in (now, later):
        await whole.jobs.cancel(APP, answer.job_id)
        assert (await seen(whole, answer.job_id)).state is JobState.CANCELLED
    assert await take(whole) == []
    assert (await whole.jobs.horizon(APP, ("send",))).wake_at is None


async def test_pages_show_each_job_once_while_others_come_and_go(whole: Store) -> None:
    """B073: rows written while paging are neither shown twice nor push others away."""
    await whole.jobs.enqueue([new_job(f"j{number:02}") for number in range(25)])
    shown: list[str] = []
    cursor: str | None = None
    for turn in range(3):
        page = await whole.jobs.list(JobFilter(APP, before=cursor, limit=10))
        shown += [job.job_id for job in page.jobs]
        cursor = page.next_cursor
        await whole.jobs.enqueue([new_job(f"new{turn}-{number}") for number in range(7)])
        await report(whole, completed(await take_one(whole)))
    assert cursor is None
    assert shown == [f"send#0:j{number:02}" for number in reversed(range(25))]


async def test_a_page_is_narrowed_by_state_and_binding(whole: Store) -> None:
    await whole.jobs.enqueue([new_job("a"), new_job("b", binding="other"), new_job("c")])
    await report(whole, completed(await take_one(whole)))
    page = await whole.jobs.list(JobFilter(APP, states=(JobState.SCHEDULED,), binding="send"))
    assert [job.job_id for job in page.jobs] == ["send#0:c"]
    assert (await whole.jobs.list(JobFilter("elsewhere"))).jobs == ()


@pytest.mark.parametrize("wanted", [JobFilter(APP, limit=0), JobFilter(APP, limit=10**30), JobFilter(APP, before="x")])
async def test_a_page_that_makes_no_sense_is_refused(whole: Store, wanted: JobFilter) -> None:
    """B058: a limit or a cursor out of range is the caller's mistake, not a crash."""
    with pytest.raises(InvalidInputError):
        await whole.jobs.list(wanted)


async def test_a_sweep_is_bounded_and_takes_the_oldest_ended_jobs(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(5)])
    for job in await take(whole, limit=4):
        await report(whole, failed(job, again=False))
        still_clock.move(1)
    still_clock.move(DAY_MS)
    assert [await sweep_all(whole, kept=DAY, limit=3) for _ in range(3)] == [3, 1, 0]
    assert [job.job_id for job in (await whole.jobs.list(JobFilter(APP))).jobs] == ["send#0:j4"]


async def test_a_sweep_spares_what_ended_lately_and_what_was_retried(whole: Store, still_clock: StillClock) -> None:
    retried = await fail_for_good(whole, "retried")
    await fail_for_good(whole, "old")
    still_clock.move(DAY_MS)
    await whole.jobs.retry(APP, retried)
    await whole.jobs.enqueue([new_job("late")])
    await report(whole, failed((await take(whole))[1], again=False))
    assert await sweep_all(whole, kept=DAY) == 1
    assert [job.job_id for job in (await whole.jobs.list(JobFilter(APP))).jobs] == ["send#0:late", retried]


async def test_a_late_report_never_lands_on_a_younger_job(whole: Store, still_clock: StillClock) -> None:
    """Keys are not reused, whatever was removed."""
    await whole.jobs.enqueue([new_job("old")])
    old = await take_one(whole)
    await report(whole, completed(old))
    still_clock.move(1)
    assert await sweep_all(whole) == 1
    await whole.jobs.enqueue([new_job("young")])
    young = await take_one(whole)
    assert young.key > old.key
    assert not await report(whole, completed(old))
