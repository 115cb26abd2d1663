"""Short words for what tests of the mirror's rooms do all the time."""

from __future__ import annotations

from kizami.store.protocol import BoardClaim, DeliveryClaim, LeaseFence, NewDelivery
from tests.conformance.mirror_store import MirrorStore

APP, CHANNEL = "shop", "C1"
STALE_MS = 600_000
CLAIM_MS = 300_000
TODAY = "2026-06-01"


def new(item: str, due: str = TODAY) -> NewDelivery:
    return NewDelivery(CHANNEL, item, '{"text": "hello"}', due)


async def take(store: MirrorStore, run: str, worker: str = "w1") -> bool:
    return await store.leases.acquire(APP, "mirror", run, "host", worker, STALE_MS)


async def claim(store: MirrorStore, item: str, ticket: str, fence: LeaseFence | None = None) -> DeliveryClaim | None:
    return await store.deliveries.claim(APP, CHANNEL, item, ticket, CLAIM_MS, "w1", fence)


async def claimed(store: MirrorStore, item: str, ticket: str = "t1", fence: LeaseFence | None = None) -> DeliveryClaim:
    found = await claim(store, item, ticket, fence)
    assert found is not None
    return found


async def claim_board(store: MirrorStore, ticket: str = "t1", channel: str = CHANNEL) -> BoardClaim | None:
    return await store.boards.claim(APP, "services", channel, ticket, CLAIM_MS, "w1", None)


async def claimed_board(store: MirrorStore, ticket: str = "t1", channel: str = CHANNEL) -> BoardClaim:
    found = await claim_board(store, ticket, channel)
    assert found is not None
    return found


async def owed(store: MirrorStore, until: str = TODAY, limit: int = 10) -> list[str]:
    return [place.item for place in await store.deliveries.owed(APP, CHANNEL, until, limit)]
