"""What the mirror remembers: deliveries with markers and intents, boards, call gates and cursors over source rows.

Every write takes an optional lease fence and lands only while that run holds the lease. Claims carry a random token
and expire on a clock that steps don't touch; an acknowledgement must carry the same token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kizami.core.times import EpochMs

if TYPE_CHECKING:
    from kizami.store.protocol.leases import LeaseFence


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """Something owed to a channel. `item` is unique per (app, channel); `content` is the message as JSON."""

    channel: str
    item: str
    content: str
    due: str
    """The local date (ISO) on which it becomes due."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A post that was about to be tried, committed before the call; unsettled ones are in doubt."""

    attempt: int
    channel: str
    attempted_at: EpochMs
    slack_at: EpochMs | None = None
    """What Slack's clock showed at least by then, as far as it was known; messages are looked for by it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery as people see it; `delivered_at` is the marker, written only after Slack accepted."""

    app: str
    channel: str
    item: str
    content: str
    due: str
    created_at: EpochMs
    delivered_at: EpochMs | None
    posted_channel: str | None
    ts: str | None
    attempts: int
    in_doubt_since: EpochMs | None
    set_aside_at: EpochMs | None
    note: str | None
    possible_duplicates: int


@dataclass(frozen=True, slots=True)
class OwedDelivery:
    """A place in a channel's queue; `order` is that of adding, `in_doubt_since` is its oldest unsettled intent.

    `slack_since` is Slack's time of the oldest unsettled intent of which that is known.
    """

    item: str
    due: str
    order: int
    in_doubt_since: EpochMs | None = None
    slack_since: EpochMs | None = None


FIRST: Final = OwedDelivery("", "", 0)
"""The place before the first."""


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """A delivery claimed with a token; `unsettled` are earlier intents whose outcome is unknown."""

    channel: str
    item: str
    content: str
    token: str
    expires_ms: int
    attempts: int
    unsettled: tuple[Intent, ...]
    lineage: str | None = None
    """Of an item in a table that several databases share: what its messages carry, whoever posts them."""


class DeliveryStore(Protocol):
    """Operations on deliveries. The missing marker is the queue."""

    async def add(
        self,
        app: str,
        items: Sequence[NewDelivery],
        cursor: CursorMove | None = None,
        fence: LeaseFence | None = None,
    ) -> tuple[bool, ...] | None:
        """Add deliveries and move a cursor in one transaction; False for an item that is there already.

        None: the fence no longer holds, and nothing is written. Raises CursorMovedError, and then nothing is written
        either, when the cursor isn't where the move begins.
        """
        ...

    async def owed(
        self, app: str, channel: str, until: str, limit: int, after: OwedDelivery = FIRST
    ) -> tuple[OwedDelivery, ...]:
        """Return what is owed to a channel, due until that local date, by due date then order of adding.

        Claimed ones whose claim has not expired, and those set aside, are left out; `after` continues behind a place.
        """
        ...

    async def set_aside_old(
        self, app: str, channel: str, due_before: str, note: str, fence: LeaseFence | None = None
    ) -> int:
        """Set visibly aside what has been due since before that local date; return how many."""
        ...

    async def claim(
        self, app: str, channel: str, item: str, token: str, expires_ms: int, worker_id: str, fence: LeaseFence | None
    ) -> DeliveryClaim | None:
        """Claim one owed delivery; None: somebody else has it, it is marked, or the lease is lost."""
        ...

    async def claim_owed_elsewhere(
        self,
        app: str,
        new: NewDelivery,
        token: str,
        expires_ms: int,
        worker_id: str,
        fence: LeaseFence | None,
        *,
        retry_refused: bool = False,
    ) -> DeliveryClaim | None:
        """Claim an item that another table owes, with its content and due date of now; an unknown one is recorded.

        That table decides what is owed: an item delivered before is owed anew. One that is set aside is claimed only
        when its content or due date has changed, or with `retry_refused`. None: somebody else has it, it stays set
        aside, or the lease is lost.
        """
        ...

    async def intend(
        self, app: str, claim: DeliveryClaim, fence: LeaseFence | None, slack_at: EpochMs | None = None
    ) -> Intent | None:
        """Commit that the post is about to be tried, at what time by Slack's clock, and start the claim's time anew.

        None: the claim or the lease is no longer ours.
        """
        ...

    async def mark(
        self, app: str, claim: DeliveryClaim, posted_channel: str, ts: str, note: str | None, fence: LeaseFence | None
    ) -> bool:
        """Write the marker and settle all intents, guarded by the token; False: it landed nowhere."""
        ...

    async def settle(self, app: str, claim: DeliveryClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied (refused, or looked up and absent)."""
        ...

    async def hand_back(self, app: str, claim: DeliveryClaim, note: str | None, *, set_aside: bool = False) -> bool:
        """Give up the claim without a marker, saying why; with `set_aside` it leaves the queue visibly."""
        ...

    async def count_possible_duplicate(self, app: str, channel: str, item: str, note: str) -> None:
        """Count an acknowledgement that touched no row."""
        ...

    async def requeue(self, app: str, channel: str, item: str | None = None) -> int:
        """Owe what was set aside again, one item or a whole channel's, due from now on; return how many.

        Its unsettled intents stay, so what is in doubt is looked for first. Raises NotFoundError for a channel or item
        that isn't there, WrongStateError for an item that isn't set aside.
        """
        ...

    async def get(self, app: str, channel: str, item: str) -> Delivery | None:
        """Return one delivery."""
        ...

    async def known(self, app: str, channel: str, items: Sequence[str]) -> tuple[Delivery, ...]:
        """Return those of these items that are recorded, in no particular order."""
        ...

    async def outstanding(self, app: str, channel: str, limit: int) -> tuple[Delivery, ...]:
        """Return what is in doubt in a channel, then what is owed to it, so many of each, newest first."""
        ...

    async def list(self, app: str, channel: str | None, state: str | None, limit: int) -> tuple[Delivery, ...]:
        """Return deliveries, newest first; `state` is owed, delivered, in_doubt, set_aside or None for all."""
        ...

    async def counts(self, app: str) -> dict[str, dict[str, int]]:
        """Return, per channel, how many deliveries are owed, delivered, in doubt and set aside."""
        ...


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A board as people see it. `synced_at` is when the shown data was fetched; `ts` is a string always."""

    app: str
    name: str
    channel: str
    posted_channel: str | None
    ts: str | None
    synced_at: EpochMs | None
    content_hash: str | None
    posted_at: EpochMs | None
    edited_at: EpochMs | None
    posts: int
    edits: int
    in_doubt_since: EpochMs | None
    note: str | None
    off_at: EpochMs | None
    """When its channel was last found not to be writable; None: it is on."""
    aimed_at: EpochMs | None
    """When the newest data that an edit or post was tried with was fetched."""
    replaced_at: EpochMs | None
    """When its message was last given up for a new one."""
    parked_hash: str | None
    """The content that Slack refuses for good, whatever its size."""
    possible_duplicates: int

    @property
    def off(self) -> bool:
        """Tell whether the board is off."""
        return self.off_at is not None


@dataclass(frozen=True, slots=True)
class BoardClaim:
    """A board's row, claimed before it is posted or edited; `unsettled` are posts whose outcome is unknown."""

    board: BoardRow
    token: str
    expires_ms: int
    unsettled: tuple[Intent, ...]


@dataclass(frozen=True, slots=True)
class BoardPost:
    """A board's first or repeated post that Slack accepted."""

    posted_channel: str
    ts: str
    synced_at: EpochMs
    content_hash: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class BoardEdit:
    """An edit that Slack accepted."""

    synced_at: EpochMs
    content_hash: str


class BoardStore(Protocol):
    """Operations on status boards: one message for each name in each channel.

    Data is newer by when it was fetched, on the store's clock; a time after now is one from before a step back of it.
    """

    async def claim(
        self, app: str, name: str, channel: str, token: str, expires_ms: int, worker_id: str, fence: LeaseFence | None
    ) -> BoardClaim | None:
        """Claim a board's row, making it when it isn't there; None: somebody else has it, or the lease is lost."""
        ...

    async def intend_post(
        self,
        app: str,
        claim: BoardClaim,
        synced_at: EpochMs,
        fence: LeaseFence | None,
        slack_at: EpochMs | None = None,
    ) -> Intent | None:
        """Commit that a post will be tried, at what time by Slack's clock.

        None: the claim or lease isn't ours, or newer data was tried.
        """
        ...

    async def intend_edit(self, app: str, claim: BoardClaim, synced_at: EpochMs, fence: LeaseFence | None) -> bool:
        """Commit that an edit will be tried, so that what is shown isn't known until it is marked.

        False: the claim or lease isn't ours, or newer data was tried.
        """
        ...

    async def mark_posted(self, app: str, claim: BoardClaim, post: BoardPost, fence: LeaseFence | None) -> bool:
        """Keep the message's ts, settle all intents and end the claim; False: it landed nowhere."""
        ...

    async def mark_edited(self, app: str, claim: BoardClaim, edit: BoardEdit, fence: LeaseFence | None) -> bool:
        """Record an edit and end the claim; False: it landed nowhere."""
        ...

    async def settle(self, app: str, claim: BoardClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied."""
        ...

    async def forget_message(
        self, app: str, claim: BoardClaim, note: str, not_within_ms: int, fence: LeaseFence | None
    ) -> bool:
        """Give up a message for a new one; False: it was done within that time, or isn't ours to do."""
        ...

    async def park(self, app: str, claim: BoardClaim, content_hash: str, note: str) -> bool:
        """Remember content that Slack refuses for good, so that it isn't tried again; ends the claim."""
        ...

    async def hand_back(self, app: str, claim: BoardClaim, note: str | None, *, off: bool = False) -> bool:
        """Give up the claim, saying why; `off`: its channel can't be written to, as of now."""
        ...

    async def distrust(self, app: str, claim: BoardClaim, note: str, *, posted: bool) -> None:
        """Note that an acknowledgement touched no row: what is shown isn't known; a post may be a duplicate."""
        ...

    async def switch_on(self, app: str, name: str, channel: str) -> bool:
        """Let a board that is off be published again; False when it isn't off."""
        ...

    async def list(self, app: str) -> tuple[BoardRow, ...]:
        """Return the boards of an app by name and channel."""
        ...


@dataclass(frozen=True, slots=True)
class Gate:
    """A closed gate: no call through it for `remaining_ms` more."""

    method: str
    channel: str
    remaining_ms: int
    reason: str


class GateStore(Protocol):
    """Gates shared by all workers and kept over a restart; `channel` is '' for a whole method."""

    async def close(self, app: str, method: str, channel: str, for_ms: int, reason: str) -> None:
        """Close a gate for that long; an earlier closing that lasts longer stays."""
        ...

    async def closed(self, app: str) -> tuple[Gate, ...]:
        """Return the gates that are closed now."""
        ...


@dataclass(frozen=True, slots=True)
class CursorMove:
    """A move of a cursor from the position that was read (None: there was none) to another; positions are JSON text."""

    name: str
    read: str | None
    position: str


class CursorStore(Protocol):
    """Cursors over source rows. They move in the transaction that adds deliveries (`DeliveryStore.add`).

    A move lands only where the cursor stands at the position that the mover read, so of two movers one does.
    """

    async def position(self, app: str, name: str) -> str | None:
        """Return the stored position, or None before the first move."""
        ...


class IdentityStore(Protocol):
    """Which database this is."""

    async def database_id(self) -> str:
        """Return what tells this database from others: 16 hexadecimal digits, drawn when its schema was made.

        What is posted carries it, so that two databases of one app never adopt each other's messages.
        """
        ...
