"""Definitions follow the code, and whatever moves a plan past due ticks writes them to the ledger."""

from __future__ import annotations

import pytest

from kizami.core.errors import NotFoundError
from kizami.core.timing import Timing, cron_timing, interval_timing
from kizami.store.protocol import FireOutcome, Store
from tests.conformance.planned import (
    EVERY_MINUTE,
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
)
from tests.conformance.whole_store import APP, START_MS, StillClock

HOUR_MS = 60 * MINUTE_MS
NEXT_MINUTE = START_MS + 20_000  # the clock starts at second 40
HOURLY = cron_timing("0 * * * *")
NEXT_HOUR = START_MS + 33 * MINUTE_MS + 20_000  # it starts at 20:26:40


async def test_a_new_schedule_first_fires_strictly_after_its_registration(
    whole: Store, still_clock: StillClock
) -> None:
    """B029: created shortly before its time it fires then; created at or after it, the next time."""
    assert await register(whole, defined()) == {NAME: 1}
    assert await planned_at(whole) == NEXT_MINUTE
    for late in (20_000, 400):
        still_clock.move(late)
        await register(whole, defined(), defined(f"late{late}"))
        assert await planned_at(whole, f"late{late}") == NEXT_MINUTE + MINUTE_MS
        assert (await one(whole, f"late{late}")).last_fired_at is None


async def test_an_interval_first_fires_one_interval_after_registration(whole: Store) -> None:
    await register(whole, defined(timing=interval_timing(7_000)))
    assert await planned_at(whole) == START_MS + 7_000


async def test_registering_the_same_again_changes_nothing(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(timing=interval_timing(90_000)))
    before = await one(whole)
    still_clock.move(60_000)
    assert await register(whole, defined(timing=interval_timing(90_000))) == {NAME: 1}
    assert await one(whole) == before


async def test_a_changed_timing_gets_a_new_plan_and_a_greater_version(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(timing=HOURLY))
    still_clock.move(5_000)
    assert await register(whole, defined(timing=interval_timing(10_000))) == {NAME: 2}
    assert await planned_at(whole) == START_MS + 15_000
    assert await ledger(whole) == []


@pytest.mark.parametrize("timing", [HOURLY, interval_timing(HOUR_MS)], ids=["cron", "interval"])
@pytest.mark.parametrize("late_ms", [-100, 500])
async def test_other_changes_keep_plan_and_phase(
    whole: Store, still_clock: StillClock, timing: Timing, late_ms: int
) -> None:
    """B032: an unrelated edit around the due time loses no run."""
    await register(whole, defined(timing=timing))
    planned = await planned_at(whole)
    still_clock.move(planned - START_MS + late_ms)
    version = (await register(whole, defined(timing=timing, note="renamed")))[NAME]
    assert await planned_at(whole) == planned
    still_clock.move(500)
    assert (await fire_planned(whole, version)).outcome is FireOutcome.FIRED
    assert await planned_at(whole) == planned + HOUR_MS


async def test_the_same_rule_written_differently_keeps_its_due_tick(whole: Store, still_clock: StillClock) -> None:
    """B032: textual difference with equal meaning re-computes nothing."""
    await register(whole, defined(timing=cron_timing("0 9 * * 0")))
    planned = await planned_at(whole)
    still_clock.move(planned - still_clock.now + 1)
    await register(whole, defined(timing=cron_timing("00 09 * * 7"), note="tidied"))
    assert await planned_at(whole) == planned


async def test_a_tick_already_due_is_settled_before_the_new_timing_counts(
    whole: Store, still_clock: StillClock
) -> None:
    """The old timing's ticks up to the change and the new one's since are each counted once, none invented."""
    await register(whole, defined(timing=HOURLY))
    still_clock.move(NEXT_HOUR - START_MS + 2 * HOUR_MS)
    changed_at = still_clock.now
    version = (await register(whole, defined(timing=EVERY_MINUTE)))[NAME]
    assert await planned_at(whole) == NEXT_HOUR
    still_clock.move(150_000)
    assert (await fire_planned(whole, version)).outcome is FireOutcome.FIRED
    assert await planned_at(whole) == changed_at + 3 * MINUTE_MS
    assert sorted(await ledger(whole), key=lambda line: line[1]) == [
        (FireOutcome.FIRED, NEXT_HOUR, NEXT_HOUR, 1),
        (FireOutcome.MISSED, NEXT_HOUR + HOUR_MS, changed_at, 2),
        (FireOutcome.MISSED, changed_at + MINUTE_MS, changed_at + 2 * MINUTE_MS, 2),
    ]
    assert (await one(whole)).missed_count == 4


async def test_a_changed_timing_while_paused_drops_what_passed(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(timing=HOURLY))
    await whole.schedules.pause(APP, NAME)
    still_clock.move(NEXT_HOUR - START_MS + HOUR_MS + 1)
    await register(whole, defined(timing=EVERY_MINUTE))
    assert await ledger(whole) == [(FireOutcome.PAUSED, NEXT_HOUR, NEXT_HOUR + HOUR_MS, 2)]
    resumed = await whole.schedules.resume(APP, NAME)
    assert resumed.next_at == NEXT_HOUR + HOUR_MS + MINUTE_MS
    assert await counted(whole) == 2


async def test_a_removed_schedule_disappears_and_a_readded_one_starts_anew(
    whole: Store, still_clock: StillClock
) -> None:
    await register(whole, defined(), defined("other"))
    still_clock.move(MINUTE_MS)
    assert await register(whole, defined("other")) == {"other": 1}
    assert await whole.schedules.get(APP, NAME) is None
    assert [found.name for found in await whole.schedules.list(APP)] == ["other"]
    assert await ledger(whole) == [(FireOutcome.MISSED, NEXT_MINUTE, NEXT_MINUTE, 1)]
    still_clock.move(MINUTE_MS)
    versions = await register(whole, defined(), defined("other"))
    assert versions[NAME] > 2
    assert await planned_at(whole) == NEXT_MINUTE + 2 * MINUTE_MS


async def test_what_is_due_is_told_to_those_with_the_present_definition(whole: Store, still_clock: StillClock) -> None:
    old = await register(whole, defined(), defined("b"))
    new = await register(whole, defined(note="new"), defined("b"))
    assert (await whole.schedules.due(APP, new, 10)).due == ()
    still_clock.move(20_000)
    assert [due.name for due in (await whole.schedules.due(APP, old, 10)).due] == ["b"]
    page = await whole.schedules.due(APP, new, 10)
    assert {(due.name, due.version, due.planned_at) for due in page.due} == {
        ("b", 1, NEXT_MINUTE),
        (NAME, 2, NEXT_MINUTE),
    }
    assert (page.now, page.next_planned_at) == (still_clock.now, None)
    assert len((await whole.schedules.due(APP, new, 1)).due) == 1
    assert (await whole.schedules.due("elsewhere", new, 10)).due == ()


async def test_the_next_time_to_look_is_told(whole: Store) -> None:
    versions = await register(whole, defined(), defined("hourly", HOURLY))
    assert (await whole.schedules.due(APP, versions, 10)).next_planned_at == NEXT_MINUTE


async def test_paused_and_externally_driven_schedules_are_never_due(whole: Store, still_clock: StillClock) -> None:
    versions = await register(whole, defined(), defined("outside", driver="external"))
    paused = await whole.schedules.pause(APP, NAME)
    assert (paused.paused_at, paused.next_at) == (START_MS, None)
    still_clock.move(HOUR_MS)
    page = await whole.schedules.due(APP, versions, 10)
    assert (page.due, page.next_planned_at) == ((), None)


async def test_what_passed_in_a_pause_is_dropped_and_counted(whole: Store, still_clock: StillClock) -> None:
    """B028: no fire on resume, the next is the first boundary after now, the missed ones are in the history."""
    await register(whole, defined(timing=cron_timing("20 3 * * *", "Asia/Tokyo")))
    first = await planned_at(whole)
    await whole.schedules.pause(APP, NAME)
    still_clock.move(first - START_MS + 3 * 24 * HOUR_MS + 6 * HOUR_MS)
    assert (await fire(whole, at_tick(first))).outcome is FireOutcome.STALE
    resumed = await whole.schedules.resume(APP, NAME)
    assert (resumed.next_at, resumed.missed_count, resumed.paused_at) == (first + 4 * 24 * HOUR_MS, 4, None)
    assert await ledger(whole) == [(FireOutcome.PAUSED, first, first + 3 * 24 * HOUR_MS, 4)]
    assert await whole.schedules.resume(APP, NAME) == resumed


async def test_a_tick_that_was_due_before_the_pause_is_dropped_too(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    still_clock.move(20_000)
    await whole.schedules.pause(APP, NAME)
    await whole.schedules.resume(APP, NAME)
    assert await ledger(whole) == [(FireOutcome.PAUSED, NEXT_MINUTE, NEXT_MINUTE, 1)]
    assert await planned_at(whole) == NEXT_MINUTE + MINUTE_MS


async def test_a_short_pause_changes_nothing_and_a_second_pause_keeps_the_first_time(
    whole: Store, still_clock: StillClock
) -> None:
    await register(whole, defined())
    await whole.schedules.pause(APP, NAME)
    still_clock.move(1_000)
    assert (await whole.schedules.pause(APP, NAME)).paused_at == START_MS
    await whole.schedules.resume(APP, NAME)
    assert (await planned_at(whole), await ledger(whole)) == (NEXT_MINUTE, [])


async def test_a_pause_survives_a_deploy(whole: Store) -> None:
    await register(whole, defined())
    await whole.schedules.pause(APP, NAME)
    await register(whole, defined(note="new", timing=HOURLY))
    assert (await one(whole)).paused_at == START_MS


async def test_a_long_downtime_costs_one_row(whole: Store, still_clock: StillClock) -> None:
    """B023: ten years of missed minutes are counted, not listed."""
    await register(whole, defined())
    still_clock.move(3650 * 24 * HOUR_MS)
    await fire_planned(whole)
    fired, missed = await ledger(whole)
    assert fired == (FireOutcome.FIRED, NEXT_MINUTE, NEXT_MINUTE, 1)
    assert missed[0] is FireOutcome.MISSED
    assert missed[3] == 3650 * 24 * 60 - 1
    assert await planned_at(whole) == missed[2] + MINUTE_MS


async def test_after_a_step_back_schedules_stay_silent_until_the_stored_plan(
    whole: Store, still_clock: StillClock
) -> None:
    """B026: no time fires twice, whatever is done to the schedule meanwhile."""
    await register(whole, defined())
    still_clock.move(HOUR_MS)
    await fire_planned(whole)
    planned = await planned_at(whole)
    settled = planned - MINUTE_MS
    still_clock.step(-HOUR_MS)
    versions = await register(whole, defined(note="again"))
    assert (await whole.schedules.due(APP, versions, 10)).due == ()
    assert await planned_at(whole) == planned
    await whole.schedules.pause(APP, NAME)
    assert (await whole.schedules.resume(APP, NAME)).next_at == planned
    await register(whole, defined(timing=interval_timing(1_000)))
    assert await planned_at(whole) > settled
    await register(whole)
    await register(whole, defined())
    assert await planned_at(whole) > settled


async def test_turning_the_inner_clock_off_and_on(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    still_clock.move(MINUTE_MS)
    await register(whole, defined(driver="external"))
    assert (await one(whole)).next_at is None
    assert await ledger(whole) == [(FireOutcome.MISSED, NEXT_MINUTE, NEXT_MINUTE, 1)]
    still_clock.move(MINUTE_MS)
    assert (await external(whole, NEXT_MINUTE + MINUTE_MS, version=2)).outcome is FireOutcome.FIRED
    await register(whole, defined())
    assert await planned_at(whole) == NEXT_MINUTE + 2 * MINUTE_MS


@pytest.mark.parametrize("operation", ["pause", "resume"])
async def test_an_unknown_schedule_is_named(whole: Store, operation: str) -> None:
    with pytest.raises(NotFoundError, match="no schedule nobody in app shop"):
        await getattr(whole.schedules, operation)(APP, "nobody")


async def test_two_apps_share_a_name_but_no_schedule(whole: Store) -> None:
    await register(whole, defined())
    await whole.schedules.register("elsewhere", [], redefine=True)
    await whole.schedules.register("elsewhere", [defined(timing=HOURLY)], redefine=True)
    assert await planned_at(whole) == NEXT_MINUTE
