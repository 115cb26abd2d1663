"""What a deliver needs of a queue, wherever its markers stand: Kizami's own table, or a table of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kizami.store.protocol.deliveries import FIRST

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.store.protocol import DeliveryClaim, Intent, LeaseFence, OwedDelivery


class DeliveryQueue(Protocol):
    """The operations of `DeliveryStore` that a deliver uses; each is described there."""

    async def owed(
        self, app: str, channel: str, until: str, limit: int, after: OwedDelivery = FIRST
    ) -> tuple[OwedDelivery, ...]:
        """Return what is owed, from the place `after` on."""
        ...

    async def set_aside_old(
        self, app: str, channel: str, due_before: str, note: str, fence: LeaseFence | None = None
    ) -> int:
        """Set aside what is due for too long; return how many."""
        ...

    async def claim(
        self, app: str, channel: str, item: str, token: str, expires_ms: int, worker_id: str, fence: LeaseFence | None
    ) -> DeliveryClaim | None:
        """Claim one item, or return None."""
        ...

    async def intend(
        self, app: str, claim: DeliveryClaim, fence: LeaseFence | None, slack_at: EpochMs | None = None
    ) -> Intent | None:
        """Commit that a post will be tried, or return None when the item is no longer ours."""
        ...

    async def mark(
        self, app: str, claim: DeliveryClaim, posted_channel: str, ts: str, note: str | None, fence: LeaseFence | None
    ) -> bool:
        """Write the marker; False: it landed nowhere."""
        ...

    async def settle(self, app: str, claim: DeliveryClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied."""
        ...

    async def hand_back(self, app: str, claim: DeliveryClaim, note: str | None, *, set_aside: bool = False) -> bool:
        """Give up the claim without a marker."""
        ...

    async def count_possible_duplicate(self, app: str, channel: str, item: str, note: str) -> None:
        """Count an acknowledgement that touched no row."""
        ...
