"""What the store keeps of items that another table owes: their claims, intents and refusals, but not the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.store.protocol import Delivery, DeliveryClaim, LeaseFence, NewDelivery
from tests.conformance.mirror_store import HandClock, MirrorStore, mirror_store

APP, PLACE = "shop", "C1:orders.slack_ts"
CLAIM_MS = 300_000
OWED = NewDelivery(PLACE, "7", '{"text": "order 7"}', "2026-06-01")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(tmp_path: Path, clock: HandClock) -> AsyncIterator[MirrorStore]:
    async with mirror_store(tmp_path, clock) as opened:
        yield opened


async def claim(
    store: MirrorStore,
    ticket: str,
    new: NewDelivery = OWED,
    fence: LeaseFence | None = None,
    *,
    retry_refused: bool = False,
) -> DeliveryClaim | None:
    return await store.deliveries.claim_owed_elsewhere(
        APP, new, ticket, CLAIM_MS, "w1", fence, retry_refused=retry_refused
    )


async def claimed(store: MirrorStore, ticket: str, new: NewDelivery = OWED) -> DeliveryClaim:
    found = await claim(store, ticket, new)
    assert found is not None
    return found


async def stored(store: MirrorStore) -> Delivery:
    (found,) = await store.deliveries.known(APP, PLACE, ["7", "8"])
    return found


async def test_claiming_records_an_item_and_only_one_of_many_claims_lands(store: MirrorStore) -> None:
    assert await store.deliveries.known(APP, PLACE, ["7"]) == ()
    answers = await asyncio.gather(*(claim(store, f"t{number}") for number in range(20)))
    (mine,) = (answer for answer in answers if answer)
    assert (mine.item, mine.content, mine.attempts, mine.unsettled) == ("7", OWED.content, 0, ())
    assert (await stored(store)).due == OWED.due
    assert await claim(store, mine.token) == mine


async def test_a_claim_brings_the_content_of_now_and_keeps_the_doubts(store: MirrorStore, clock: HandClock) -> None:
    intent = await store.deliveries.intend(APP, await claimed(store, "t1"), None)
    assert (await stored(store)).in_doubt_since == clock.now
    clock.move(CLAIM_MS)
    again = await claimed(store, "t2", NewDelivery(PLACE, "7", '{"text": "changed"}', "2026-06-02"))
    assert (again.content, again.attempts, again.unsettled) == ('{"text": "changed"}', 1, (intent,))
    assert (await stored(store)).due == "2026-06-02"


async def test_an_item_whose_marker_was_cleared_is_owed_anew(store: MirrorStore) -> None:
    first = await claimed(store, "t1")
    assert await store.deliveries.intend(APP, first, None)
    assert await store.deliveries.mark(APP, first, "C1", "1.1", "a note", None)
    again = await claimed(store, "t2")
    found = await stored(store)
    assert (found.delivered_at, found.ts, found.note) == (None, None, None)
    intent = await store.deliveries.intend(APP, again, None)
    assert intent is not None
    assert intent.attempt == 2


@pytest.mark.parametrize(
    ("content", "due", "retry_refused", "is_claimed"),
    [
        (OWED.content, OWED.due, False, False),
        ('{"text": "shorter"}', OWED.due, False, True),
        (OWED.content, "2026-06-09", False, True),
        (OWED.content, OWED.due, True, True),
    ],
    ids=["unchanged", "content", "due", "on-request"],
)
async def test_what_is_set_aside_is_claimed_again_only_when_it_changed_or_on_request(
    store: MirrorStore, content: str, due: str, retry_refused: bool, is_claimed: bool
) -> None:
    """So that content which Slack refuses isn't sent again at every tick."""
    assert await store.deliveries.hand_back(APP, await claimed(store, "t1"), "refused", set_aside=True)
    answer = await claim(store, "t2", NewDelivery(PLACE, "7", content, due), retry_refused=retry_refused)
    assert (answer is not None) == is_claimed
    assert ((await stored(store)).set_aside_at is None) == is_claimed


async def test_a_run_without_its_lease_neither_records_nor_claims(store: MirrorStore) -> None:
    lost = LeaseFence("mirror", "gone")
    assert await claim(store, "t1", fence=lost) is None
    assert await store.deliveries.known(APP, PLACE, ["7"]) == ()
