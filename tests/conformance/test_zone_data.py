"""The rules of a zone change under a stored plan: it is made anew, no local time fires twice, none is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kizami.core.timing import cron_timing, zone_data_of
from kizami.store.protocol import FireOutcome, Registration, ScheduleDefinition, Store
from tests.conformance.planned import NAME, at_tick, defined, one, planned_at
from tests.conformance.whole_store import APP, StillClock
from tests.zone_data import ZONE, zones_as_of

# 1 July 2026: "early" is three hours ahead of UTC, "late" two. 09:00 there is 06:00Z by the one, 07:00Z by the other.
EARLY = ("2026c", {ZONE: "Asia/Riyadh"})
LATE = ("2026b", {ZONE: "Africa/Johannesburg"})
MIDNIGHT = datetime(2026, 7, 1, tzinfo=UTC)


def ms(hour: float, day: int = 1) -> int:
    return round((MIDNIGHT + timedelta(days=day - 1, hours=hour)).timestamp() * 1000)


def nine() -> ScheduleDefinition:
    """Return the schedule as a process defines it that has the present database."""
    timing = cron_timing("0 9 * * *", ZONE)
    plain = defined(timing=timing)
    return ScheduleDefinition(
        plain.name, timing, plain.binding, "overlap", "inner", None, plain.fingerprint, "", zone_data_of(timing)
    )


async def start(store: Store, worker_id: str = "w1") -> Registration:
    return await store.schedules.register(APP, [nine()], worker_id=worker_id)


@pytest.fixture
def clock(still_clock: StillClock) -> StillClock:
    still_clock.step(ms(0) - still_clock.now)
    return still_clock


@pytest.mark.parametrize(("before", "after", "hours"), [(LATE, EARLY, (7, 6)), (EARLY, LATE, (6, 7))])
async def test_a_plan_follows_the_new_rules(
    whole: Store,
    clock: StillClock,
    before: tuple[str, dict[str, str]],
    after: tuple[str, dict[str, str]],
    hours: tuple[int, int],
) -> None:
    """B019: exactly one fire, at the new instant; the edition is stored and shown."""
    with zones_as_of(*before):
        await start(whole)
        assert (await planned_at(whole), (await one(whole)).zone_data) == (ms(hours[0]), before[0])
    with zones_as_of(*after):
        (moved,) = (await start(whole)).moved
        assert (moved.before, moved.after, moved.zone_data) == (ms(hours[0]), ms(hours[1]), before[0])
        assert (await planned_at(whole), (await one(whole)).zone_data) == (ms(hours[1]), after[0])
        assert (await one(whole)).version == 1
        clock.step(ms(hours[1]) - clock.now)
        (record,) = await whole.schedules.fire([at_tick(ms(hours[1]))])
        assert record.outcome is FireOutcome.FIRED
        assert await planned_at(whole) == ms(hours[1], day=2)
        assert (await start(whole)).moved == ()


async def test_a_local_time_that_has_fired_does_not_fire_again_at_its_new_instant(
    whole: Store, clock: StillClock
) -> None:
    """B019: what is claimed keeps its identity."""
    with zones_as_of(*EARLY):
        await start(whole)
        clock.step(ms(6) - clock.now)
        await whole.schedules.fire([at_tick(ms(6))])
    with zones_as_of(*LATE):
        clock.step(ms(6.5) - clock.now)
        await start(whole)
        assert await planned_at(whole) == ms(7, day=2)


async def test_a_local_time_that_the_new_rules_put_into_the_past_still_fires(whole: Store, clock: StillClock) -> None:
    with zones_as_of(*LATE):
        await start(whole)
    with zones_as_of(*EARLY):
        clock.step(ms(6.5) - clock.now)
        await start(whole)
        assert await planned_at(whole) == ms(6)
        (record,) = await whole.schedules.fire([at_tick(ms(6))])
        assert record.outcome is FireOutcome.FIRED
        assert await planned_at(whole) == ms(6, day=2)


async def test_a_tick_that_is_due_is_settled_first(whole: Store, clock: StillClock) -> None:
    with zones_as_of(*EARLY):
        await start(whole)
    with zones_as_of(*LATE):
        clock.step(ms(6.5) - clock.now)
        await start(whole)
        assert await planned_at(whole) == ms(6)
        await whole.schedules.fire([at_tick(ms(6))])
        assert await planned_at(whole) == ms(7, day=2)


async def test_processes_with_different_rules_do_not_fight(whole: Store, clock: StillClock) -> None:
    """The newest that came first into force plans; the other stands back while it lives."""
    with zones_as_of(*LATE):
        assert NAME in (await start(whole, "w1")).versions
    with zones_as_of(*EARLY):
        assert NAME in (await start(whole, "w2")).versions
    with zones_as_of(*LATE):
        again = await start(whole, "w1")
        assert again.versions == {}
        assert [each.zone_data for each in again.superseded] == ["2026c"]
        assert "time-zone database 2026c" in str(again.superseded[0])
        outside = await whole.schedules.register(APP, [nine()])
        assert outside.versions == {NAME: 1}
    assert await planned_at(whole) == ms(6)
    assert clock.now == ms(0)


async def test_an_interval_and_utc_know_no_rules() -> None:
    assert zone_data_of(cron_timing("0 9 * * *")) is None
    assert zone_data_of(cron_timing("0 9 * * *", ZONE)) is not None
