"""A user's table as the queue of a deliver.

Two databases can't commit together, so each step is one commit in one of them, in this order: claim in Kizami's, claim
in the table, intent in Kizami's, post, marker in the table, settled in Kizami's. A crash after any of them leaves what
the next deliver understands: a claim that expires, an intent that is looked up, or a marker that settles its intent.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kizami.slack.posting import CLAIM_MS, Posted
from kizami.slack.row_tokens import TAG_LENGTH, RowToken, lineage_of
from kizami.slack.user_table_names import UserTableError
from kizami.store.protocol.deliveries import FIRST, Intent, NewDelivery, OwedDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.core.times import EpochMs
    from kizami.engine.context import JobContext
    from kizami.slack.message import Message
    from kizami.slack.user_table_names import Days
    from kizami.slack.user_table_rows import OwedRow, UserRows
    from kizami.store.protocol import Delivery, DeliveryClaim, LeaseFence

log = logging.getLogger("kizami.slack.deliveries")

MARKER_WAITS_S: Final = (0.5, 1.0)
"""Before the second and third try to write a marker: its message is there to be seen."""

_GONE: Final = "its row is gone"
_OLD: Final = "set aside for its age"
_OUTSTANDING_MAX: Final = 100
_INHERITED: Final = 0
"""The attempt that stands for those of another claim, whose token was still in the table."""
_ITEM_MAX: Final = 200


@dataclass(slots=True)
class TableMemory:
    """What a process remembers of a table between delivers; forgetting it costs look-ups, never a post."""

    accepted: dict[str, Posted] = field(default_factory=dict)
    """Messages whose marker couldn't be written, because the table was out of reach."""
    old: int = 0
    """How many rows were too old when last seen, so that each is told once."""


@dataclass(slots=True)
class HeldRow:
    """A row that is claimed in the table; `doubts` are the attempts at it whose outcome isn't known."""

    token: str
    row: OwedRow
    doubts: set[int]


@dataclass(slots=True)
class QueueCounts:
    """What a queue did by itself, to be added to the deliver's report."""

    adopted: int = 0
    refused: int = 0


class TableQueue:
    """The rows of a user's table that are owed, for one deliver; see `DeliveryQueue`. Raises UserTableError.

    `place` is the channel under which Kizami keeps claims and intents of this table, apart from other queues.
    """

    def __init__(
        self,
        job: JobContext,
        rows: UserRows,
        place: str,
        days: Days,
        render: Callable[[OwedRow], Message],
        memory: TableMemory,
        database_id: str,
    ) -> None:
        self._job = job
        self._store = job.store.deliveries
        self._rows = rows
        self._place = place
        self._channel = place.partition(":")[0]
        self._days = days
        self._render = render
        self._memory = memory
        self._tag = database_id[:TAG_LENGTH]
        self._held: dict[str, HeldRow] = {}
        self._last: OwedRow | None = None
        self._new: dict[str, NewDelivery] = {}
        self._known: dict[str, Delivery] = {}
        self.counts = QueueCounts()

    # --- what earlier delivers left ----------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Write markers that are owed to the table, and settle what the table has settled meanwhile."""
        for item, posted in tuple(self._memory.accepted.items()):
            await self._write_late(item, posted)
        outstanding = await self._store.outstanding(self._job.app, self._place, _OUTSTANDING_MAX)
        if outstanding:
            markers = await self._rows.markers([delivery.item for delivery in outstanding])
            for delivery in outstanding:
                still_owed = delivery.item in markers and markers[delivery.item] is None
                if not still_owed:
                    await self._settle_from_table(delivery.item, markers.get(delivery.item))

    async def _write_late(self, item: str, posted: Posted) -> None:
        claim = await self._claim_known(item)
        if claim is None:
            (known,) = await self._store.known(self._job.app, self._place, [item]) or (None,)
            if known is None or known.delivered_at is not None:
                self._memory.accepted.pop(item, None)
            return
        try:
            if await self._hold(claim, None) is None:
                self._memory.accepted.pop(item, None)  # marked, gone or taken: the look-up and the table know more
            elif await self.mark(self._job.app, claim, posted.channel, posted.ts, "marked late", None):
                self.counts.adopted += 1
        finally:
            await self.hand_back(self._job.app, claim, None)

    async def _settle_from_table(self, item: str, marker: str | None) -> None:
        """End what a crash left after the marker was written, or what waits for a row that is gone."""
        claim = await self._claim_known(item)
        if claim is None:
            return
        if marker is None:
            await self._store.hand_back(self._job.app, claim, _GONE, set_aside=True)
        else:
            await self._settle(self._job.app, claim, self._channel, marker, None)

    async def _claim_known(self, item: str) -> DeliveryClaim | None:
        job, token = self._job, self._job.runtime.entropy.token()
        return await self._store.claim(job.app, self._place, item, token, CLAIM_MS, job.worker_id, job.fence)

    async def _settle(self, app: str, claim: DeliveryClaim, posted_channel: str, ts: str, note: str | None) -> None:
        """Say in Kizami's database what the table says. The table's marker stands already, so no lease is asked."""
        await self._store.mark(app, claim, posted_channel, ts, note, None)

    # --- the queue ---------------------------------------------------------------------------------------------------

    async def set_aside_old(
        self,
        app: str,
        channel: str,  # noqa: ARG002 - the place has it
        due_before: str,
        note: str,
        fence: LeaseFence | None = None,
    ) -> int:
        """Write the note where the table has a column for it; return how many are too old that weren't before."""
        old, undated = await self._rows.count_old(self._days)
        await self._store.set_aside_old(app, self._place, due_before, _OLD, fence)
        if undated:
            self.counts.refused += undated
            log.error("%s: %d rows don't say when they are due: no ISO date", self._place, undated)
        if self._rows.has_set_aside:
            await self._rows.set_aside_old(self._days, note)
            return old
        grown, self._memory.old = max(0, old - self._memory.old), old
        return grown

    async def owed(
        self,
        app: str,
        channel: str,  # noqa: ARG002 - the place has it
        until: str,  # noqa: ARG002 - the days have it
        limit: int,
        after: OwedDelivery = FIRST,
    ) -> tuple[OwedDelivery, ...]:
        """Return the next rows that are owed, by due date then id.

        The place is kept here: its parts have types of the table's, which an `OwedDelivery` can't carry.
        """
        if after == FIRST:
            self._last = None
        while page := await self._rows.page(self._days, self._last, limit, self._tag):
            self._last = page[-1]
            kept = await self._kept(app, page)
            if kept or len(page) < limit:
                return kept
        return ()

    async def _kept(self, app: str, page: Sequence[OwedRow]) -> tuple[OwedDelivery, ...]:
        """Return the rows that can be posted: they render, and aren't what Slack has refused already."""
        self._new = {new.item: new for row in page if (new := self._rendered(row)) is not None}
        known = await self._store.known(app, self._place, tuple(self._new))
        self._known = {delivery.item: delivery for delivery in known}
        return tuple(
            OwedDelivery(item, new.due, order, self._known[item].in_doubt_since if item in self._known else None)
            for order, (item, new) in enumerate(self._new.items(), start=1)
            if not self._is_refused(new)
        )

    def _rendered(self, row: OwedRow) -> NewDelivery | None:
        item = self._rows.item_of(row.key)
        try:
            if len(item) > _ITEM_MAX:
                raise ValueError(f"its id is longer than {_ITEM_MAX} characters")  # noqa: TRY301 - as what it renders
            content = self._render(row).to_json()
        except Exception as error:  # whatever it is, it is this row's own fault
            self.counts.refused += 1
            log.exception("%s/%s can't be rendered: %s", self._place, item[:_ITEM_MAX], error)  # noqa: TRY401 - in the line
            return None
        return NewDelivery(self._place, item, content, self._rows.day_of(row, self._days))

    def _is_refused(self, new: NewDelivery) -> bool:
        known = self._known.get(new.item)
        return (
            known is not None
            and known.set_aside_at is not None
            and not self._may_retry(new.item)
            and (known.content, known.due) == (new.content, new.due)
        )

    def _may_retry(self, item: str) -> bool:
        """Tell whether what Kizami set aside gives way: the table has a say of its own, or it was never refused."""
        known = self._known.get(item)
        return self._rows.has_set_aside or (known is not None and known.note in {_GONE, _OLD})

    # --- one row -----------------------------------------------------------------------------------------------------

    async def claim(
        self,
        app: str,
        channel: str,  # noqa: ARG002 - the place has it
        item: str,
        token: str,
        expires_ms: int,
        worker_id: str,
        fence: LeaseFence | None,
    ) -> DeliveryClaim | None:
        """Claim a row in both databases; None: somebody has it, it is marked, or the lease is lost."""
        claim = await self._store.claim_owed_elsewhere(
            app, self._new[item], token, expires_ms, worker_id, fence, retry_refused=self._may_retry(item)
        )
        if claim is None:
            return None
        found: DeliveryClaim | None = None
        try:
            held = await self._hold(claim, self._days)
            if held is not None:
                found = await self._as_it_is_now(app, claim, held, worker_id, fence)
            else:
                marker = (await self._rows.markers([item])).get(item)
                if marker is not None:
                    await self._settle(self._job.app, claim, self._channel, marker, None)
        finally:
            if found is None:  # after a marker this touches nothing
                await self.hand_back(app, claim, None)
        return found

    async def _hold(self, claim: DeliveryClaim, days: Days | None) -> HeldRow | None:
        """Claim the row in the table."""
        key = self._rows.key_of(claim.item)
        claimed = await self._rows.claim(key, RowToken(self._tag, claim.token), claim.expires_ms, days)
        if claimed is None:
            return None
        doubts = {intent.attempt for intent in claim.unsettled}
        held = self._held[claim.item] = HeldRow(claimed.token, claimed.row, doubts)
        if claimed.before is not None:
            held.doubts.add(_INHERITED)
        return held

    async def _as_it_is_now(
        self, app: str, claim: DeliveryClaim, held: HeldRow, worker_id: str, fence: LeaseFence | None
    ) -> DeliveryClaim | None:
        """Return the claim with what the row says now, which may be another text than when the page was read."""
        new = self._rendered(held.row)
        if new is None:
            return None
        if new != self._new[claim.item]:
            self._new[claim.item] = new
            again = await self._store.claim_owed_elsewhere(
                app, new, claim.token, claim.expires_ms, worker_id, fence, retry_refused=self._may_retry(claim.item)
            )
            if again is None:
                return None
            claim = again
        lineage = lineage_of(held.token)
        inherited = (Intent(_INHERITED, self._place, 0),) if _INHERITED in held.doubts else ()
        return replace(claim, lineage=lineage, unsettled=(*claim.unsettled, *inherited))

    async def intend(
        self, app: str, claim: DeliveryClaim, fence: LeaseFence | None, slack_at: EpochMs | None = None
    ) -> Intent | None:
        """Renew the claim in the table, however long the look-up took, then commit the intent.

        None also when the row says something else by now: its next turn posts that.
        """
        held = self._held[claim.item]
        found = await self._rows.renew(self._rows.key_of(claim.item), held.token, claim.expires_ms, self._days)
        if found is None or found.row != held.row:
            return None
        intent = await self._store.intend(app, claim, fence, slack_at)
        if intent is not None:
            held.doubts.add(intent.attempt)
        return intent

    async def mark(
        self,
        app: str,
        claim: DeliveryClaim,
        posted_channel: str,
        ts: str,
        note: str | None,
        fence: LeaseFence | None,  # noqa: ARG002 - the marker is the table's, and the claim's token its fence
    ) -> bool:
        """Write the marker, then settle; where the table has claims, their token is its fence."""
        self._memory.accepted.setdefault(claim.item, Posted(posted_channel, ts))
        is_marked = await self._write_marker(claim, ts)
        self._memory.accepted.pop(claim.item, None)
        if is_marked:
            await self._settle(app, claim, posted_channel, ts, note)
        return is_marked

    async def _write_marker(self, claim: DeliveryClaim, ts: str) -> bool:
        key, token = self._rows.key_of(claim.item), self._token_of(claim)
        for wait_s in MARKER_WAITS_S:
            try:
                return await self._rows.mark(key, token, ts)
            except UserTableError as error:
                log.warning("%s/%s: its marker is tried again: %s", self._place, claim.item, error)
                await self._job.runtime.clock.sleep(wait_s)
        return await self._rows.mark(key, token, ts)

    def _token_of(self, claim: DeliveryClaim) -> str:
        held = self._held.get(claim.item)
        return claim.token if held is None else held.token

    async def settle(self, app: str, claim: DeliveryClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied; what another database left is only known to the table."""
        if intent.attempt != _INHERITED and not await self._store.settle(app, claim, intent, note):
            return False
        held = self._held.get(claim.item)
        if held is not None:
            held.doubts.discard(intent.attempt)
        return True

    async def hand_back(self, app: str, claim: DeliveryClaim, note: str | None, *, set_aside: bool = False) -> bool:
        """Give up both claims; with `set_aside` the row leaves the queue, visibly.

        A row in doubt keeps its claim in the table, for which other databases wait; after that they look, as we do.
        """
        done = await self._store.hand_back(app, claim, note, set_aside=set_aside)
        held = self._held.pop(claim.item, None)
        if held is None:
            return done
        key = self._rows.key_of(claim.item)
        try:
            if set_aside:
                await self._rows.set_aside(key, held.token, note or "refused by Slack")
            if not held.doubts:
                await self._rows.release(key, held.token)
        except UserTableError as error:
            log.warning("%s/%s: its claim stays until it expires: %s", self._place, claim.item, error)
        return done

    async def count_possible_duplicate(self, app: str, channel: str, item: str, note: str) -> None:  # noqa: ARG002 - as above
        """Count an acknowledgement that touched no row."""
        await self._store.count_possible_duplicate(app, self._place, item, note)
