"""A stored timing that can't be read breaks its own schedule and no other (B020)."""

from __future__ import annotations

import pytest

from kizami.core.errors import DefinitionError
from kizami.store.protocol import FireOutcome, Store, TickKind
from tests.conformance.damaged import GONE, damage
from tests.conformance.planned import (
    MINUTE_MS,
    NAME,
    at_tick,
    defined,
    external,
    fire,
    ledger,
    one,
    planned_at,
    register,
)
from tests.conformance.whole_store import APP, StillClock

OTHERS = [f"good{number}" for number in range(10)]
KINDS = [GONE, "{}", "[]", "[1]", "7", "null", '{"kind": "interval", "every_ms": 0}', '{"kind": "cron"}']


@pytest.mark.parametrize("timing", KINDS)
async def test_a_timing_that_cannot_be_read_stops_its_own_schedule_only(
    whole: Store, still_clock: StillClock, timing: str
) -> None:
    versions = await register(whole, *map(defined, [NAME, *OTHERS]))
    await damage(whole, timing)
    still_clock.move(2 * MINUTE_MS)
    page = await whole.schedules.due(APP, versions, 100)
    assert (sorted(each.name for each in page.due), list(page.broken)) == (OTHERS, [NAME])
    for due in page.due:
        assert (await fire(whole, at_tick(due.planned_at, name=due.name))).outcome is FireOutcome.FIRED
    listed = {each.name: each for each in await whole.schedules.list(APP)}
    assert (listed[NAME].timing, listed[NAME].broken) == (None, page.broken[NAME])
    assert {listed[name].broken for name in OTHERS} == {None}


async def test_the_reason_names_the_zone_that_is_gone(whole: Store) -> None:
    await register(whole, defined())
    await damage(whole)
    broken = (await one(whole)).broken
    assert broken is not None
    assert "'Europe/Atlantis' is not an IANA name of the time-zone database" in broken


@pytest.mark.parametrize("changed", [False, True])
async def test_code_mends_a_broken_schedule_also_when_its_fingerprint_is_the_same(
    whole: Store, still_clock: StillClock, *, changed: bool
) -> None:
    await register(whole, defined())
    planned = await planned_at(whole)
    await damage(whole)
    still_clock.move(2 * MINUTE_MS)
    versions = await register(whole, defined(note="other" if changed else ""))
    assert versions == {NAME: 2 if changed else 1}
    assert (await one(whole)).broken is None
    assert (await fire(whole, at_tick(planned, versions[NAME]))).outcome is FireOutcome.FIRED


async def test_code_that_does_not_define_a_broken_schedule_removes_it(whole: Store, still_clock: StillClock) -> None:
    """Only its plan is known, and the ledger accounts for it."""
    await register(whole, defined(), defined("other"))
    planned = await planned_at(whole)
    await damage(whole)
    still_clock.move(5 * MINUTE_MS)
    assert await register(whole, defined("other")) == {"other": 1}
    assert await ledger(whole) == [(FireOutcome.MISSED, planned, planned, 1)]


async def test_what_needs_the_timing_says_which_schedule_is_broken(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    planned = await planned_at(whole)
    await damage(whole)
    await whole.schedules.pause(APP, NAME)
    still_clock.move(MINUTE_MS)
    with pytest.raises(DefinitionError, match=f"Schedule {NAME} is broken"):
        await whole.schedules.resume(APP, NAME)
    with pytest.raises(DefinitionError, match=f"Schedule {NAME} is broken"):
        await external(whole, planned)
    with pytest.raises(DefinitionError, match=f"Schedule {NAME} is broken"):
        _ = (await one(whole)).known_timing
    assert (await fire(whole, at_tick(planned, kind=TickKind.MANUAL))).outcome is FireOutcome.FIRED
