"""Each tick fires once, and the ledger accounts for every one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kizami.core.errors import LeaseHeldError, NotFoundError
from kizami.core.options import Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import Fire, FireOutcome, JobFilter, Origin, Outcome, Report, Store, TickKind
from tests.conformance.planned import (
    MINUTE_MS,
    NAME,
    at_tick,
    counted,
    defined,
    external,
    fire,
    fire_planned,
    ledger,
    one,
    planned_at,
    register,
    tick_job,
)
from tests.conformance.whole_store import (
    APP,
    SILENT_MS,
    START_MS,
    StillClock,
    completed,
    failed,
    report,
    seen,
    sweep_all,
    take_one,
    whole_store,
)

NEXT_MINUTE = START_MS + 20_000


async def jobs_of(store: Store, name: str = NAME) -> list[str]:
    page = await store.jobs.list(JobFilter(APP, schedule=name))
    return [job.job_id for job in page.jobs]


def manual(clock: StillClock, **changes: object) -> Fire:
    return replace(at_tick(clock.now, kind=TickKind.MANUAL), **changes)  # type: ignore[arg-type]  # fields by name


async def skipping(store: Store, clock: StillClock) -> str:
    """Define a schedule that skips overlaps, fire it, come to the next tick, and return the job."""
    await register(store, defined(overlap="skip"))
    clock.move(20_000)
    record = await fire_planned(store)
    clock.move(MINUTE_MS)
    assert record.job_id is not None
    return record.job_id


async def test_a_fire_writes_job_ledger_and_plan_together(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    still_clock.move(21_500)
    record = await fire_planned(whole)
    assert (record.outcome, record.job_id) == (FireOutcome.FIRED, f"send#0:{NAME}-{NEXT_MINUTE}")
    found = await one(whole)
    assert (found.last_planned_at, found.last_fired_at) == (NEXT_MINUTE, NEXT_MINUTE + 1_500)
    assert (found.last_job_id, found.fired_count, found.next_at) == (record.job_id, 1, NEXT_MINUTE + MINUTE_MS)
    assert (await take_one(whole)).job_id == record.job_id
    (line,) = await whole.schedules.ledger(APP, None, 10)
    assert (line.by, line.version, line.acted_at, line.job_id) == ("w1", 1, still_clock.now, record.job_id)


async def test_two_schedulers_fire_each_tick_once(whole: Store, tmp_path: Path, still_clock: StillClock) -> None:
    """B025, B031: two processes act on the same 500 due ticks at the same moment."""
    names = [f"s{number}" for number in range(500)]
    versions = await register(whole, *(defined(name) for name in names))
    still_clock.move(20_000)
    async with whole_store(tmp_path, still_clock) as other:
        page = await other.schedules.due(APP, versions, 1_000)
        wanted = [at_tick(due.planned_at, due.version, name=due.name) for due in page.due]
        calls = [room.schedules.fire(wanted[at : at + 50]) for at in range(0, 500, 50) for room in (whole, other)]
        answers = [record for records in await asyncio.gather(*calls) for record in records]
    outcomes = [record.outcome for record in answers]
    assert (outcomes.count(FireOutcome.FIRED), outcomes.count(FireOutcome.STALE)) == (500, 500)
    assert await whole.jobs.count_by_state(APP) == {"send": {JobState.SCHEDULED: 500}}
    assert len(await whole.schedules.ledger(APP, None, 10_000)) == 500


async def test_a_scheduler_that_comes_too_late_writes_nothing(whole: Store, still_clock: StillClock) -> None:
    """B031: one that was stopped between looking and acting."""
    await register(whole, defined())
    still_clock.move(20_000)
    await fire_planned(whole)
    still_clock.move(10 * MINUTE_MS)
    before = await one(whole)
    assert (await fire(whole, at_tick(NEXT_MINUTE))).outcome is FireOutcome.STALE
    assert (await fire(whole, at_tick(NEXT_MINUTE + 2 * MINUTE_MS))).outcome is FireOutcome.STALE
    assert await one(whole) == before
    assert len(await ledger(whole)) == 1


async def test_a_tick_that_is_not_due_yet_is_not_fired(whole: Store) -> None:
    await register(whole, defined())
    assert (await fire_planned(whole)).outcome is FireOutcome.STALE
    assert await jobs_of(whole) == []


async def test_a_superseded_definition_fires_nothing(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    await register(whole, defined(note="new"))
    still_clock.move(20_000)
    assert (await fire_planned(whole, version=1)).outcome is FireOutcome.SUPERSEDED
    await register(whole)
    assert (await fire(whole, at_tick(NEXT_MINUTE))).outcome is FireOutcome.SUPERSEDED
    assert await whole.jobs.count_by_state(APP) == {}


async def test_a_waiting_previous_job_makes_its_successors_skip(whole: Store, still_clock: StillClock) -> None:
    """B034: pending counts as outstanding; nine of ten ticks are skipped, with the blocker's id, and one job runs."""
    first = await skipping(whole, still_clock)
    for _ in range(9):
        record = await fire_planned(whole)
        assert record.outcome is FireOutcome.SKIPPED_OVERLAP
        assert record.reason == f"the previous job {first} has not ended"
        still_clock.move(MINUTE_MS)
    found = await one(whole)
    assert (found.fired_count, found.skipped_count, found.last_job_id) == (1, 9, first)
    assert found.skipped_at == still_clock.now - MINUTE_MS
    await report(whole, completed(await take_one(whole)))
    assert (await fire_planned(whole)).outcome is FireOutcome.FIRED
    assert await counted(whole) == 11


async def test_a_job_that_waits_for_its_retry_is_outstanding(whole: Store, still_clock: StillClock) -> None:
    await skipping(whole, still_clock)
    job = await take_one(whole)
    assert (await fire_planned(whole)).outcome is FireOutcome.SKIPPED_OVERLAP
    await report(whole, failed(job, again=True, delay_ms=10 * MINUTE_MS))
    still_clock.move(MINUTE_MS)
    assert (await fire_planned(whole)).outcome is FireOutcome.SKIPPED_OVERLAP


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.STALLED])
async def test_an_ended_previous_job_blocks_nothing(whole: Store, still_clock: StillClock, state: JobState) -> None:
    await skipping(whole, still_clock)
    job = await take_one(whole)
    await report(whole, Report(job.key, job.claim, state, Outcome.FAILED))
    assert (await fire_planned(whole)).outcome is FireOutcome.FIRED


async def test_a_lost_previous_job_blocks_until_it_is_reaped(whole: Store, still_clock: StillClock) -> None:
    """B035: a stuck run doesn't stop its schedule for ever."""
    await register(whole, defined(overlap="skip"))
    still_clock.move(20_000)
    once = replace(tick_job(), options=JobOptions(guarantee=Guarantee.AT_MOST_ONCE))
    await fire(whole, replace(at_tick(NEXT_MINUTE), job=once))
    await take_one(whole)
    still_clock.move(SILENT_MS + 1)
    assert (await fire_planned(whole)).outcome is FireOutcome.SKIPPED_OVERLAP
    await whole.jobs.reap(APP, SILENT_MS)
    still_clock.move(MINUTE_MS)
    assert (await fire_planned(whole)).outcome is FireOutcome.FIRED


async def test_a_swept_previous_job_blocks_nothing_and_its_tick_stays_fired(
    whole: Store, still_clock: StillClock
) -> None:
    await skipping(whole, still_clock)
    await report(whole, completed(await take_one(whole)))
    still_clock.move(1)
    assert await sweep_all(whole) == 1
    assert (await fire_planned(whole)).outcome is FireOutcome.FIRED
    assert (await fire(whole, at_tick(NEXT_MINUTE))).outcome is FireOutcome.STALE
    assert (await external(whole, NEXT_MINUTE)).outcome is FireOutcome.DUPLICATE


async def test_an_expected_skip_whose_blocker_just_ended_is_looked_at_again(
    whole: Store, still_clock: StillClock
) -> None:
    await skipping(whole, still_clock)
    expecting_a_skip = at_tick(NEXT_MINUTE + MINUTE_MS, job=False)
    await report(whole, completed(await take_one(whole)))
    assert (await fire(whole, expecting_a_skip)).outcome is FireOutcome.STALE
    assert await counted(whole) == 1


async def test_what_is_due_tells_its_outstanding_job(whole: Store, still_clock: StillClock) -> None:
    first = await skipping(whole, still_clock)
    (due,) = (await whole.schedules.due(APP, {NAME: 1}, 10)).due
    assert due.outstanding == first


async def test_after_a_downtime_the_oldest_tick_fires_and_the_rest_is_one_row(
    whole: Store, still_clock: StillClock
) -> None:
    await register(whole, defined())
    still_clock.move(20_000 + 5 * MINUTE_MS)
    await fire_planned(whole)
    assert await ledger(whole) == [
        (FireOutcome.FIRED, NEXT_MINUTE, NEXT_MINUTE, 1),
        (FireOutcome.MISSED, NEXT_MINUTE + MINUTE_MS, NEXT_MINUTE + 5 * MINUTE_MS, 5),
    ]
    found = await one(whole)
    assert (found.missed_count, found.next_at) == (5, NEXT_MINUTE + 6 * MINUTE_MS)


async def test_a_refusal_settles_its_tick_and_the_schedule_goes_on(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    still_clock.move(20_000)
    record = await fire(whole, at_tick(NEXT_MINUTE, refusal="the payload function raised"))
    assert (record.outcome, record.reason) == (FireOutcome.FAILED, "the payload function raised")
    found = await one(whole)
    assert (found.failed_count, found.last_error, found.last_error_at) == (1, record.reason, still_clock.now)
    assert (found.next_at, found.last_fired_at) == (NEXT_MINUTE + MINUTE_MS, None)


async def test_a_manual_fire_leaves_the_plan_alone(whole: Store, still_clock: StillClock) -> None:
    """It fires while paused and while the previous job is outstanding, and isn't anybody's previous job."""
    await register(whole, defined(overlap="skip"))
    await whole.schedules.pause(APP, NAME)
    records = [await fire(whole, manual(still_clock)) for _ in range(3)]
    assert [record.job_id for record in records] == [
        f"send#0:{NAME}-{START_MS}-{number}-manual" for number in (1, 2, 3)
    ]
    found = await whole.schedules.resume(APP, NAME)
    assert (found.next_at, found.fired_count, found.last_job_id) == (NEXT_MINUTE, 0, None)
    still_clock.move(20_000)
    assert (await fire_planned(whole)).outcome is FireOutcome.FIRED
    assert await counted(whole) == 1


async def test_a_manual_number_is_never_used_again(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    await fire(whole, manual(still_clock))
    await report(whole, completed(await take_one(whole)))
    still_clock.move(1)
    await sweep_all(whole)
    await register(whole)
    await register(whole, defined())
    still_clock.step(-1)
    record = await fire(whole, manual(still_clock, version=3))
    assert record.job_id == f"send#0:{NAME}-{START_MS}-2-manual"


async def test_a_manual_refusal_is_told_and_enqueues_nothing(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    record = await fire(whole, manual(still_clock, job=None, refusal="bad payload"))
    assert (record.outcome, record.job_id, record.reason) == (FireOutcome.FAILED, None, "bad payload")
    assert (await one(whole)).last_error == "bad payload"


async def test_no_count_knows_of_fires_by_hand(whole: Store, still_clock: StillClock) -> None:
    """The counts add up to the planned ticks; what people did beside the plan is in the ledger only."""
    await register(whole, defined())
    before = await one(whole)
    await fire(whole, manual(still_clock))
    await fire(whole, manual(still_clock, job=None, refusal="bad payload"))
    assert replace(await one(whole), last_error=None, last_error_at=None) == before
    assert len(await whole.schedules.ledger(APP, NAME, 10)) == 2


async def test_a_held_lease_refuses_a_manual_fire_with_its_holder(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(lease="mirror"))
    await whole.leases.acquire(APP, "mirror", "run-1", "host 7", "w1", 600_000)
    with pytest.raises(LeaseHeldError) as caught:
        await fire(whole, manual(still_clock))
    assert caught.value.facts == {"holder": "host 7", "started_at": START_MS, "heartbeat_at": START_MS}
    assert await whole.schedules.ledger(APP, None, 10) == ()
    assert await whole.jobs.count_by_state(APP) == {}
    still_clock.move(600_000)
    with pytest.raises(LeaseHeldError):
        await fire(whole, manual(still_clock))
    still_clock.move(1)
    record = await fire(whole, manual(still_clock))
    assert record.job_id == f"send#0:{NAME}-{still_clock.now}-1-manual"


async def test_a_tick_skipped_by_its_lease_is_told_once(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(lease="mirror"))
    still_clock.move(20_000)
    tick = at_tick(NEXT_MINUTE)
    job = replace(tick_job(), origin=Origin(NAME, NEXT_MINUTE, lease="mirror"))
    await fire(whole, replace(tick, job=job))
    held = completed(await take_one(whole), '"lease_held"')._replace(skipped_by_lease=True)
    assert [await report(whole, held), await report(whole, held)] == [True, True]
    found = await one(whole)
    assert (found.fired_count, found.skipped_count) == (0, 1)
    assert await ledger(whole) == [(FireOutcome.SKIPPED_LEASE, NEXT_MINUTE, NEXT_MINUTE, 1)]
    assert (await seen(whole, f"send#0:{NAME}-{NEXT_MINUTE}")).state is JobState.COMPLETED


async def test_an_external_tick_delivered_again_is_a_duplicate(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(driver="external"))
    still_clock.move(20_000)
    first = await external(whole, NEXT_MINUTE)
    again = await external(whole, NEXT_MINUTE)
    assert (first.outcome, again.outcome) == (FireOutcome.FIRED, FireOutcome.DUPLICATE)
    assert again.job_id == first.job_id
    assert await counted(whole) == 1


async def test_external_ticks_delivered_at_once_fire_once(
    whole: Store, tmp_path: Path, still_clock: StillClock
) -> None:
    await register(whole, defined(driver="external"))
    still_clock.move(20_000)
    async with whole_store(tmp_path, still_clock) as other:
        records = await asyncio.gather(*(external(room, NEXT_MINUTE) for room in (whole, other) * 5))
    outcomes = sorted(record.outcome for record in records)
    assert outcomes == [FireOutcome.DUPLICATE] * 9 + [FireOutcome.FIRED]


async def test_an_external_tick_out_of_order_is_not_fired(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(driver="external"))
    still_clock.move(20_000 + MINUTE_MS)
    assert (await external(whole, NEXT_MINUTE + MINUTE_MS)).outcome is FireOutcome.FIRED
    late = await external(whole, NEXT_MINUTE)
    assert (late.outcome, late.job_id) == (FireOutcome.OVERTAKEN, None)
    assert late.reason == "a later tick was settled before it was delivered"
    assert (FireOutcome.OVERTAKEN, NEXT_MINUTE, NEXT_MINUTE, 1) in await ledger(whole)
    again = await external(whole, NEXT_MINUTE)
    assert (again.outcome, again.reason) == (FireOutcome.DUPLICATE, "this tick was settled already (overtaken)")
    assert await counted(whole) == 2
    assert ((await one(whole)).fired_count, (await one(whole)).missed_count) == (1, 1)


async def test_an_external_tick_that_was_dropped_before_it_came_says_so(whole: Store, still_clock: StillClock) -> None:
    """It is in the ledger already, as one of a stretch: no second line, but no duplicate either, for it never fired."""
    await register(whole, defined())
    still_clock.move(20_000 + 3 * MINUTE_MS)
    await fire_planned(whole)
    before = await ledger(whole)
    for at in (NEXT_MINUTE + MINUTE_MS, NEXT_MINUTE + 2 * MINUTE_MS):
        late = await external(whole, at)
        assert (late.outcome, late.planned_at) == (FireOutcome.OVERTAKEN, at)
        assert late.reason == "it was dropped before it was delivered (missed: no worker acted on them in time)"
    assert (await external(whole, NEXT_MINUTE)).outcome is FireOutcome.DUPLICATE
    assert await ledger(whole) == before


@pytest.mark.parametrize("kind", [TickKind.EXTERNAL, TickKind.MANUAL])
async def test_a_tick_whose_job_is_not_made_yet_is_settled_only_if_it_wants_none(
    whole: Store, still_clock: StillClock, kind: TickKind
) -> None:
    """So that a payload function runs for no duplicate, no skipped tick and no held lease."""
    await register(whole, defined(overlap="skip", driver="external", lease="mirror"))
    still_clock.move(20_000 + MINUTE_MS)
    asked = at_tick(NEXT_MINUTE, kind=kind, job=False)
    assert (await fire(whole, asked)).outcome is FireOutcome.STALE
    assert await whole.schedules.ledger(APP, NAME, 10) == ()
    await whole.leases.acquire(APP, "mirror", "run-1", "host 7", "w1", 600_000)
    if kind is TickKind.MANUAL:
        with pytest.raises(LeaseHeldError):
            await fire(whole, asked)
        return
    await external(whole, NEXT_MINUTE)
    assert (await fire(whole, asked)).outcome is FireOutcome.DUPLICATE
    later = replace(asked, scheduled_at=NEXT_MINUTE + MINUTE_MS)
    assert (await fire(whole, later)).outcome is FireOutcome.SKIPPED_OVERLAP


@pytest.mark.parametrize("kind", [TickKind.EXTERNAL, TickKind.MANUAL])
async def test_other_clocks_fire_no_superseded_definition_either(
    whole: Store, still_clock: StillClock, kind: TickKind
) -> None:
    await register(whole, defined(driver="external"))
    await register(whole, defined(driver="external", note="new"))
    still_clock.move(20_000)
    refused = await fire(whole, at_tick(NEXT_MINUTE, 1, kind))
    assert (refused.outcome, refused.reason) == (FireOutcome.SUPERSEDED, "version 2 of it is in force")
    assert await whole.schedules.ledger(APP, NAME, 10) == ()
    assert (await fire(whole, at_tick(NEXT_MINUTE, 2, kind))).outcome is FireOutcome.FIRED


async def test_an_external_tick_ahead_of_the_inner_clock_settles_what_it_passes(
    whole: Store, still_clock: StillClock
) -> None:
    await register(whole, defined())
    still_clock.move(20_000 + 2 * MINUTE_MS)
    assert (await external(whole, NEXT_MINUTE + 2 * MINUTE_MS)).outcome is FireOutcome.FIRED
    assert (await fire(whole, at_tick(NEXT_MINUTE))).outcome is FireOutcome.STALE
    assert sorted(await ledger(whole), key=lambda line: line[1]) == [
        (FireOutcome.MISSED, NEXT_MINUTE, NEXT_MINUTE + MINUTE_MS, 2),
        (FireOutcome.FIRED, NEXT_MINUTE + 2 * MINUTE_MS, NEXT_MINUTE + 2 * MINUTE_MS, 1),
    ]
    assert await planned_at(whole) == NEXT_MINUTE + 3 * MINUTE_MS


async def test_an_external_tick_of_a_paused_schedule_is_dropped(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(driver="external"))
    await whole.schedules.pause(APP, NAME)
    still_clock.move(20_000)
    assert (await external(whole, NEXT_MINUTE)).outcome is FireOutcome.PAUSED
    await whole.schedules.resume(APP, NAME)
    assert (await external(whole, NEXT_MINUTE)).outcome is FireOutcome.DUPLICATE
    assert (await one(whole)).missed_count == 1
    assert await whole.jobs.count_by_state(APP) == {}


@pytest.mark.parametrize("kind", [TickKind.EXTERNAL, TickKind.MANUAL])
async def test_a_tick_of_an_unknown_schedule_is_refused(whole: Store, kind: TickKind) -> None:
    with pytest.raises(NotFoundError, match="no schedule report in app shop"):
        await fire(whole, at_tick(START_MS, kind=kind))


async def test_the_ledger_and_the_counters_agree_with_the_plan(whole: Store, still_clock: StillClock) -> None:
    """Fired, skipped, failed and missed add up to what was planned."""
    await skipping(whole, still_clock)
    await fire_planned(whole)
    still_clock.move(3 * MINUTE_MS)
    await fire(whole, at_tick(await planned_at(whole), refusal="no"))
    await report(whole, completed(await take_one(whole)))
    still_clock.move(2 * MINUTE_MS)
    await fire(whole, at_tick(await planned_at(whole), refusal="no"))
    await whole.schedules.pause(APP, NAME)
    still_clock.move(4 * MINUTE_MS)
    await whole.schedules.resume(APP, NAME)
    found = await one(whole)
    passed = (still_clock.now - NEXT_MINUTE) // MINUTE_MS + 1
    assert found.fired_count + found.skipped_count + found.failed_count + found.missed_count == passed
    assert await counted(whole) == passed
