"""What was kept long enough goes, in bounded batches, and nothing happens twice because its record is gone."""

from __future__ import annotations

import pytest

from kizami.core.errors import DefinitionError
from kizami.store.protocol import DeliveryClaim, FireOutcome, Keep, LeaseFence, NewDelivery, Store, TickKind
from tests.conformance.planned import MINUTE_MS, NAME, at_tick, defined, external, fire, fire_planned, one, register
from tests.conformance.whole_store import APP, StillClock, employ

DAY_MS = 24 * 3_600_000
KEEP = Keep()
DUE = "2026-05-28"


async def fire_minutes(store: Store, clock: StillClock, count: int) -> None:
    for _ in range(count):
        clock.move(MINUTE_MS)
        await fire_planned(store)


async def lines_of(store: Store, name: str = NAME) -> list[int]:
    return [line.planned_at for line in await store.schedules.ledger(APP, name, 1_000)]


async def test_the_ledger_keeps_what_is_young_and_the_last_settled_tick(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    await fire_minutes(whole, still_clock, 5)
    assert await whole.housekeeping.sweep_ledger(APP, KEEP, 100) is None
    before = await lines_of(whole)
    assert len(before) == 5
    still_clock.move(KEEP.ledger_ms - 2 * MINUTE_MS)
    await whole.housekeeping.sweep_ledger(APP, KEEP, 100)
    assert await lines_of(whole) == before[:2]
    still_clock.move(10 * DAY_MS)
    await whole.housekeeping.sweep_ledger(APP, KEEP, 100)
    assert await lines_of(whole) == before[:1]


async def test_the_ledger_keeps_so_many_lines_of_each_schedule(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined(), defined("other"))
    await fire_minutes(whole, still_clock, 6)
    before = await lines_of(whole)
    await whole.housekeeping.sweep_ledger(APP, Keep(ledger_rows=4), 1)
    assert await lines_of(whole) == before[:5]
    await whole.housekeeping.sweep_ledger(APP, Keep(ledger_rows=4), 100)
    assert await lines_of(whole) == before[:4]
    await whole.housekeeping.sweep_ledger(APP, Keep(ledger_rows=4), 100)
    assert await lines_of(whole) == before[:4]


async def test_lines_made_by_hand_go_with_their_time(whole: Store, still_clock: StillClock) -> None:
    await register(whole, defined())
    await fire(whole, at_tick(still_clock.now, kind=TickKind.MANUAL))
    still_clock.move(KEEP.ledger_ms)
    await whole.housekeeping.sweep_ledger(APP, KEEP, 100)
    assert await lines_of(whole) == []


async def test_many_schedules_are_gone_through_in_turn(whole: Store, still_clock: StillClock) -> None:
    """One look at the ledgers stays short however many schedules there are."""
    names = [f"s{number:02}" for number in range(45)]
    await register(whole, *(defined(name) for name in names))
    for name in names:
        await fire(whole, at_tick(still_clock.now, kind=TickKind.MANUAL, name=name))
    still_clock.move(KEEP.ledger_ms)
    after, places = "", []
    while (reached := await whole.housekeeping.sweep_ledger(APP, KEEP, 100, after)) is not None:
        places.append(reached)
        after = reached
    assert places == ["s19", "s39"]
    assert await whole.schedules.ledger(APP, None, 100) == ()


async def test_a_tick_whose_line_is_gone_is_never_fired_again(whole: Store, still_clock: StillClock) -> None:
    """SPEC 4.7, for a clock that delivers months later and for a wall clock that was set back."""
    await register(whole, defined(driver="external"))
    still_clock.move(20_000)
    ticks = [still_clock.now + number * MINUTE_MS for number in range(3)]
    for tick in ticks:
        assert (await external(whole, tick)).outcome is FireOutcome.FIRED
        still_clock.move(MINUTE_MS)
    fired = (await one(whole)).fired_count
    still_clock.move(KEEP.ledger_ms)
    await whole.housekeeping.sweep_ledger(APP, KEEP, 100)
    assert await lines_of(whole) == ticks[-1:]
    assert (await external(whole, ticks[0])).outcome is FireOutcome.OVERTAKEN
    assert (await external(whole, ticks[-1])).outcome is FireOutcome.DUPLICATE
    still_clock.step(-KEEP.ledger_ms - DAY_MS)
    await register(whole, defined(note="driven from inside again"))
    next_at = (await one(whole)).next_at
    assert next_at is not None
    assert next_at > ticks[-1]
    assert (await one(whole)).fired_count == fired


async def deliver(store: Store, item: str) -> None:
    claim = await claim_of(store, item)
    assert await store.deliveries.intend(APP, claim, None) is not None
    assert await store.deliveries.mark(APP, claim, "C1", "1.1", None, None)


async def claim_of(store: Store, item: str) -> DeliveryClaim:
    claim = await store.deliveries.claim(APP, "C1", item, f"token of {item}", 300_000, "w1", None)
    assert claim is not None
    return claim


async def add(store: Store, *items: str) -> tuple[bool, ...]:
    added = await store.deliveries.add(APP, [NewDelivery("C1", item, '{"text": "hello"}', DUE) for item in items])
    assert added is not None
    return added


async def test_a_delivered_item_is_known_until_its_time_is_over(whole: Store, still_clock: StillClock) -> None:
    """And not posted again as long; afterwards it is a new one, whose attempts are counted anew."""
    await add(whole, "a", "b")
    await deliver(whole, "a")
    still_clock.move(KEEP.deliveries_ms - 1)
    assert await whole.housekeeping.sweep_deliveries(APP, KEEP, 10) == 0
    assert await add(whole, "a") == (False,)
    still_clock.move(1)
    assert await whole.housekeeping.sweep_deliveries(APP, KEEP, 10) == 1
    assert await whole.deliveries.counts(APP) == {"C1": {"owed": 1, "delivered": 0, "in_doubt": 0, "set_aside": 0}}
    assert await add(whole, "a") == (True,)
    await deliver(whole, "a")


async def test_what_is_owed_in_doubt_or_set_aside_stays_for_ever(whole: Store, still_clock: StillClock) -> None:
    await add(whole, "owed", "doubted", "aside")
    doubted = await claim_of(whole, "doubted")
    await whole.deliveries.intend(APP, doubted, None)
    await whole.deliveries.hand_back(APP, await claim_of(whole, "aside"), "refused", set_aside=True)
    still_clock.move(10 * KEEP.deliveries_ms)
    assert await whole.housekeeping.sweep_deliveries(APP, KEEP, 10) == 0
    assert await whole.housekeeping.sweep_intents(APP, KEEP, 10) == 0
    assert len(await whole.deliveries.list(APP, None, None, 10)) == 3
    assert len((await claim_of(whole, "doubted")).unsettled) == 1


async def test_deliveries_go_in_batches(whole: Store, still_clock: StillClock) -> None:
    items = [f"item{number}" for number in range(7)]
    await add(whole, *items)
    for item in items:
        await deliver(whole, item)
    still_clock.move(KEEP.deliveries_ms)
    assert [await whole.housekeeping.sweep_deliveries(APP, KEEP, 3) for _ in range(4)] == [3, 3, 1, 0]


async def test_settled_intents_go_after_a_while(whole: Store, still_clock: StillClock) -> None:
    """Those of boards and of items that never get through, which no delivery takes with it."""
    await add(whole, "a")
    claim = await claim_of(whole, "a")
    for _ in range(5):
        intent = await whole.deliveries.intend(APP, claim, None)
        assert intent is not None
        assert await whole.deliveries.settle(APP, claim, intent, "refused")
    assert await whole.housekeeping.sweep_intents(APP, KEEP, 3) == 0
    still_clock.move(KEEP.intents_ms)
    assert [await whole.housekeeping.sweep_intents(APP, KEEP, 3) for _ in range(3)] == [3, 2, 0]
    again = await whole.deliveries.intend(APP, claim, None)
    assert again is not None
    assert again.attempt == 6


async def test_a_worker_that_is_silent_for_long_is_buried(whole: Store, still_clock: StillClock) -> None:
    """Of another machine nobody sees whether its processes have ended."""
    assert await whole.leases.acquire(APP, "mirror", "run", "host", "w1", 600_000)
    still_clock.move(KEEP.silent_worker_ms - 1)
    assert await whole.housekeeping.sweep_workers(KEEP, 10) == ()
    still_clock.move(1)
    await employ(whole, "young")
    assert await whole.housekeeping.sweep_workers(KEEP, 2) == ("w1", "w2")
    assert await whole.housekeeping.sweep_workers(KEEP, 2) == ("w3",)
    assert [worker.worker_id for worker in await whole.workers.list()] == ["young"]
    assert not await whole.leases.is_held(APP, LeaseFence("mirror", "run"))


def test_what_can_not_be_kept_is_refused() -> None:
    with pytest.raises(DefinitionError, match="ledger_rows is 0"):
        Keep(ledger_rows=0)
    with pytest.raises(DefinitionError, match="silent_worker_ms is 60000"):
        Keep(silent_worker_ms=60_000)
