"""What holds between a claim and its end: fences, answers that got lost, and workers that did."""

from __future__ import annotations

import pytest

from kizami.core.errors import WrongStateError
from kizami.core.options import Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import (
    ClaimedJob,
    Heartbeat,
    LeaseFence,
    NewDelivery,
    Outcome,
    Reaped,
    Report,
    Store,
    Vouch,
)
from tests.conformance.whole_store import (
    APP,
    SILENT_MS,
    START_MS,
    StillClock,
    completed,
    employ,
    failed,
    local_ids,
    new_job,
    report,
    seen,
    take,
    take_one,
)

ONCE = JobOptions(guarantee=Guarantee.AT_MOST_ONCE)


def ended(job: ClaimedJob, state: JobState, outcome: Outcome, *, uses_attempt: bool = True, at: int = 5) -> Report:
    return Report(job.key, job.claim, state, outcome, started_at=at, ended_at=at, uses_attempt=uses_attempt)


async def claimed(store: Store, options: JobOptions | None = None) -> ClaimedJob:
    await store.jobs.enqueue([new_job("a", options)])
    return await take_one(store)


async def reap(store: Store, trusted_ms: int = SILENT_MS) -> tuple[Reaped, ...]:
    return await store.jobs.reap(APP, trusted_ms)


async def test_after_a_takeover_the_first_worker_changes_nothing(whole: Store, still_clock: StillClock) -> None:
    """B040: the second worker's result stands, the first one hears that its claim is lost."""
    first = await claimed(whole)
    still_clock.move(SILENT_MS + 1)
    await reap(whole)
    assert not await report(whole, completed(first, '"A"'))
    second = await take_one(whole, "w2")
    assert second.claim > first.claim
    assert not await report(whole, completed(first, '"A"'))
    assert not await report(whole, failed(first, again=True))
    assert await whole.jobs.heartbeat([Heartbeat(first.key, first.claim, 1, 0.9)]) == (False,)
    assert await report(whole, completed(second, '"B"'))
    assert not await report(whole, completed(first, '"A"'))
    job = await seen(whole, first.job_id)
    assert (job.state, job.result, job.progress) == (JobState.COMPLETED, '"B"', 1.0)


async def test_a_late_start_of_an_at_most_once_job_is_refused(whole: Store, still_clock: StillClock) -> None:
    job = await claimed(whole, ONCE)
    still_clock.move(SILENT_MS + 1)
    assert [taken.state for taken in await reap(whole)] == [JobState.STALLED]
    assert not await whole.jobs.start(job.key, job.claim)


async def test_a_start_lands_once(whole: Store) -> None:
    job = await claimed(whole, ONCE)
    assert [await whole.jobs.start(job.key, job.claim), await whole.jobs.start(job.key, job.claim)] == [True, False]
    assert (await seen(whole, job.job_id)).state is JobState.RUNNING


async def test_a_vouch_of_an_old_claim_keeps_nothing_alive(whole: Store, still_clock: StillClock) -> None:
    first = await claimed(whole)
    still_clock.move(SILENT_MS + 1)
    await reap(whole)
    await take_one(whole, "w2")
    whole.jobs.vouch_blocking("w1", [Vouch(first.key, first.claim, 10 * SILENT_MS)])
    still_clock.move(SILENT_MS + 1)
    assert [taken.worker_id for taken in await reap(whole)] == ["w2"]


@pytest.mark.parametrize(
    ("state", "outcome", "uses_attempt"),
    [
        (JobState.COMPLETED, Outcome.COMPLETED, True),
        (JobState.FAILED, Outcome.FAILED, True),
        (JobState.CANCELLED, Outcome.CANCELLED, True),
        (JobState.STALLED, Outcome.STALLED, True),
        (JobState.SCHEDULED, Outcome.FAILED, True),
        (JobState.SCHEDULED, Outcome.SNOOZED, False),
        (JobState.SCHEDULED, Outcome.RELEASED, False),
    ],
)
async def test_a_report_repeated_after_a_lost_answer_is_accepted_once(
    whole: Store, state: JobState, outcome: Outcome, *, uses_attempt: bool
) -> None:
    """B044: the repeat is the same end, not a second one, also when somebody has claimed the job since."""
    one = ended(await claimed(whole), state, outcome, uses_attempt=uses_attempt)
    assert await report(whole, one)
    before = await seen(whole, "send#0:a")
    assert await report(whole, one)
    assert await seen(whole, "send#0:a") == before
    await take(whole, "w2")
    assert await report(whole, one)


async def test_another_report_on_an_ended_claim_is_refused(whole: Store) -> None:
    job = await claimed(whole)
    assert await report(whole, completed(job, "1"))
    assert not await report(whole, completed(job, "2"))
    assert not await report(whole, failed(job, again=False))


async def test_a_first_try_success_leaves_no_attempt_row(whole: Store) -> None:
    job = await claimed(whole)
    await report(whole, completed(job, '{"sent":1}'))
    found = await seen(whole, job.job_id)
    assert (found.attempts, found.result, found.attempt) == ((), '{"sent":1}', 1)


async def test_a_failed_job_waits_and_its_attempts_are_told(whole: Store, still_clock: StillClock) -> None:
    job = await claimed(whole)
    await report(whole, failed(job, again=True, delay_ms=1_000, error="first"))
    still_clock.move(999)
    assert await take(whole) == []
    still_clock.move(1)
    second = await take_one(whole, "w2")
    assert (second.attempt, second.retries) == (2, 1)
    await report(whole, completed(second))
    lines = (await seen(whole, job.job_id)).attempts
    assert [(line.attempt, line.outcome, line.error, line.worker_id) for line in lines] == [
        (1, Outcome.FAILED, "first", "w1"),
        (2, Outcome.COMPLETED, None, "w2"),
    ]
    assert (lines[0].started_at, lines[0].ended_at) == (START_MS, START_MS + 1)


async def test_the_last_twenty_attempts_are_kept(whole: Store) -> None:
    job = await claimed(whole, JobOptions(max_attempts=100))
    for number in range(1, 26):
        await report(whole, failed(job, again=True, error=f"e{number}"))
        job = await take_one(whole)
    lines = (await seen(whole, job.job_id)).attempts
    assert [line.error for line in lines] == [f"e{number}" for number in range(6, 26)]


async def test_a_snooze_uses_no_attempt_and_is_logged(whole: Store, still_clock: StillClock) -> None:
    job = await claimed(whole)
    one = Report(job.key, job.claim, JobState.SCHEDULED, Outcome.SNOOZED, delay_ms=500, uses_attempt=False)
    await report(whole, one)
    still_clock.move(500)
    again = await take_one(whole)
    assert (again.attempt, again.snoozes, again.retries) == (1, 1, 0)
    await report(whole, failed(again, again=True))
    third = await take_one(whole)
    assert (third.attempt, third.snoozes, third.retries) == (2, 0, 1)
    outcomes = [line.outcome for line in (await seen(whole, job.job_id)).attempts]
    assert outcomes == [Outcome.SNOOZED, Outcome.FAILED]


async def test_a_job_handed_back_is_ready_at_once_and_used_no_attempt(whole: Store) -> None:
    job = await claimed(whole)
    await report(whole, ended(job, JobState.SCHEDULED, Outcome.RELEASED, uses_attempt=False))
    again = await take_one(whole, "w2")
    assert (again.attempt, again.retries) == (1, 0)


async def test_only_the_performer_itself_cancels_a_claimed_job(whole: Store) -> None:
    job = await claimed(whole)
    with pytest.raises(WrongStateError, match="QUEUED and can't become CANCELLED"):
        await whole.jobs.cancel(APP, job.job_id)
    assert await report(whole, ended(job, JobState.CANCELLED, Outcome.CANCELLED))
    assert (await seen(whole, job.job_id)).state is JobState.CANCELLED


async def test_a_report_along_no_arrow_is_refused(whole: Store) -> None:
    job = await claimed(whole)
    with pytest.raises(WrongStateError, match="send#0:a"):
        await report(whole, ended(job, JobState.QUEUED, Outcome.FAILED))
    assert await report(whole, completed(job))


async def test_progress_is_kept_and_a_sign_of_life_puts_off_the_end(whole: Store, still_clock: StillClock) -> None:
    job = await claimed(whole)
    still_clock.move(SILENT_MS)
    assert await whole.jobs.heartbeat([Heartbeat(job.key, job.claim, SILENT_MS, 0.25)]) == (True,)
    assert (await seen(whole, job.job_id)).progress == 0.25
    still_clock.move(SILENT_MS)
    assert await reap(whole) == ()
    whole.jobs.vouch_blocking("w1", [Vouch(job.key, job.claim, SILENT_MS)])
    still_clock.move(SILENT_MS)
    assert await reap(whole) == ()
    still_clock.move(1)
    assert len(await reap(whole)) == 1


async def test_silence_is_reaped_after_timeout_and_grace_and_not_before(whole: Store, still_clock: StillClock) -> None:
    job = await claimed(whole)
    still_clock.move(SILENT_MS)
    assert await reap(whole) == ()
    still_clock.move(1)
    (taken,) = await reap(whole)
    assert (taken.job_id, taken.state, taken.worker_id) == (job.job_id, JobState.SCHEDULED, "w1")
    assert [line.outcome for line in (await seen(whole, job.job_id)).attempts] == [Outcome.LOST]


async def test_a_reaper_that_has_not_watched_long_enough_reaps_nothing(whole: Store, still_clock: StillClock) -> None:
    await claimed(whole)
    still_clock.move(10 * SILENT_MS)
    assert await reap(whole, trusted_ms=SILENT_MS - 1) == ()
    assert len(await reap(whole, trusted_ms=SILENT_MS)) == 1


async def test_an_exhausted_job_is_failed_when_reaped(whole: Store, still_clock: StillClock) -> None:
    await claimed(whole, JobOptions(max_attempts=1))
    still_clock.move(SILENT_MS + 1)
    (taken,) = await reap(whole)
    job = await seen(whole, taken.job_id)
    assert (job.state, job.ended_at) == (JobState.FAILED, still_clock.now)
    assert job.error is not None
    assert job.error.startswith("unconfirmed: worker w1 was silent")


@pytest.mark.parametrize("started", [True, False])
async def test_a_silent_at_most_once_job_is_stalled_whatever_its_attempts(
    whole: Store, still_clock: StillClock, *, started: bool
) -> None:
    job = await claimed(whole, ONCE)
    if started:
        await whole.jobs.start(job.key, job.claim)
    still_clock.move(SILENT_MS + 1)
    assert [taken.state for taken in await reap(whole)] == [JobState.STALLED]
    assert await take(whole) == []


async def test_the_job_of_a_worker_that_is_not_registered_is_taken_at_once(whole: Store) -> None:
    """B038: a pruned worker row doesn't hide its jobs."""
    await claimed(whole)
    await whole.workers.leave("w1")
    (taken,) = await reap(whole, trusted_ms=0)
    assert (taken.state, taken.reason) == (JobState.SCHEDULED, "worker w1 is not registered any more")


async def test_a_worker_that_starts_again_does_not_adopt_its_predecessors_jobs(
    whole: Store, still_clock: StillClock
) -> None:
    """B037: another process start is another worker; its signs of life cover only what it names."""
    await claimed(whole)
    await employ(whole, "w1-restarted")
    whole.jobs.vouch_blocking("w1-restarted", [])
    still_clock.move(SILENT_MS + 1)
    assert [taken.worker_id for taken in await reap(whole)] == ["w1"]


async def test_a_burial_frees_jobs_leases_and_claims_at_once(whole: Store) -> None:
    once, often = new_job("once", ONCE), new_job("often")
    await whole.jobs.enqueue([once, often])
    jobs = await take(whole)
    await whole.jobs.start(jobs[0].key, jobs[0].claim)
    assert await whole.leases.acquire(APP, "mirror", "run-1", "host", "w1", 600_000)
    await whole.deliveries.add(APP, [NewDelivery("C1", "item", '{"text":"hi"}', "2026-05-28")], None)
    assert await whole.deliveries.claim(APP, "C1", "item", "ticket-1", 300_000, "w1", None) is not None
    taken = await whole.workers.bury("w1")
    assert [(one.job_id, one.state) for one in sorted(taken, key=lambda one: one.job_id)] == [
        ("send#0:often", JobState.SCHEDULED),
        ("send#0:once", JobState.STALLED),
    ]
    assert local_ids(await take(whole, "w2")) == ["often"]
    assert await whole.leases.acquire(APP, "mirror", "run-2", "host", "w2", 600_000)
    assert not await whole.leases.is_held(APP, LeaseFence("mirror", "run-1"))
    assert await whole.deliveries.claim(APP, "C1", "item", "ticket-2", 300_000, "w2", None) is not None
    assert [worker.worker_id for worker in await whole.workers.list(APP)] == ["w2", "w3"]
    assert await whole.workers.bury("w1") == ()


async def test_what_keeps_a_worker_from_working_fully_stands_with_it_until_it_is_taken_back(whole: Store) -> None:
    await whole.workers.note("w1", "2 threads go on")
    notes = {worker.worker_id: worker.note for worker in await whole.workers.list(APP)}
    assert (notes["w1"], notes["w2"]) == ("2 threads go on", None)
    await whole.workers.note("w1", None)
    assert {worker.note for worker in await whole.workers.list(APP)} == {None}
    await whole.workers.note("nobody", "it left meanwhile")


async def test_a_burial_leaves_the_jobs_of_others_alone(whole: Store) -> None:
    await claimed(whole)
    assert await whole.workers.bury("w2") == ()
    assert (await seen(whole, "send#0:a")).worker_id == "w1"


async def test_other_apps_are_not_reaped(whole: Store, still_clock: StillClock) -> None:
    await whole.jobs.enqueue([new_job("a", app="elsewhere")])
    await claimed(whole)
    still_clock.move(SILENT_MS + 1)
    assert await whole.jobs.reap("elsewhere", SILENT_MS) == ()
