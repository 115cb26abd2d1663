"""Deliveries: the missing marker is the queue."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import NotFoundError, WrongStateError
from kizami.core.times import to_datetime
from kizami.store.protocol.deliveries import (
    FIRST,
    CursorMove,
    Delivery,
    DeliveryClaim,
    Intent,
    NewDelivery,
    OwedDelivery,
)
from kizami.store.rooms import cursors, intents
from kizami.store.rooms.intents import fenced
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.times import EpochMs
    from kizami.store.protocol.leases import LeaseFence
    from kizami.store.statements import Statement
    from kizami.store.transaction import Database, Moment, Transaction

_SQL = load("deliveries")
STATES: Final = ("owed", "delivered", "in_doubt", "set_aside")
_UNSETTLED: Final = """
  SELECT 1 FROM kizami_intents AS i
  WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
"""
_IN_STATE: Final = {
    None: "",
    "delivered": " AND d.state = 'delivered'",
    "set_aside": " AND d.state = 'set_aside'",
    "owed": f" AND d.state = 'owed' AND NOT EXISTS ({_UNSETTLED})",
}


class DeliveryRoom:
    """Operations on deliveries; see `DeliveryStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        app: str,
        items: Sequence[NewDelivery],
        cursor: CursorMove | None = None,
        fence: LeaseFence | None = None,
    ) -> tuple[bool, ...] | None:
        """Add deliveries and move a cursor in one transaction; False for an item that is there already."""
        rows = json.dumps([asdict(item) for item in items])

        def run(transaction: Transaction, moment: Moment) -> tuple[bool, ...] | None:
            facts = fenced(app, fence, moment, items=rows)
            if not transaction.execute(_SQL["fence_holds"], facts).fetchone()[0]:
                return None
            added = {tuple(row) for row in transaction.execute(_SQL["add"], facts)}
            if cursor is not None:
                cursors.move(transaction, cursor, facts)
            return _in_order(items, added)

        return await self._database.write(run)

    async def owed(
        self, app: str, channel: str, until: str, limit: int, after: OwedDelivery = FIRST
    ) -> tuple[OwedDelivery, ...]:
        """Return what is owed to a channel, due until that local date, by due date then order of adding."""

        def look(transaction: Transaction, moment: Moment) -> tuple[OwedDelivery, ...]:
            facts = {"app": app, "channel": channel, "until": until, "limit": limit, "boot": moment.boot}
            place = {"boot_id": moment.boot_id, "after_due": after.due, "after_seq": after.order}
            return tuple(OwedDelivery(*row) for row in transaction.execute(_SQL["owed"], facts | place))

        return await self._database.read(look)

    async def set_aside_old(
        self, app: str, channel: str, due_before: str, note: str, fence: LeaseFence | None = None
    ) -> int:
        """Set visibly aside what is due since before that local date; return how many: none when the lease is lost."""

        def run(transaction: Transaction, moment: Moment) -> int:
            facts = fenced(app, fence, moment, channel=channel, due_before=due_before, note=note)
            return transaction.execute(_SQL["set_aside_old"], facts).rowcount

        return await self._database.write(run)

    async def claim(
        self, app: str, channel: str, item: str, token: str, expires_ms: int, worker_id: str, fence: LeaseFence | None
    ) -> DeliveryClaim | None:
        """Claim one owed delivery; None: somebody else has it, it is marked, or the lease is lost."""
        who = {"token": token, "expires_ms": expires_ms, "worker_id": worker_id}
        return await self._database.write(
            lambda transaction, moment: _claim(
                transaction, "claim", fenced(app, fence, moment, kind="delivery", channel=channel, item=item, **who)
            )
        )

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
        """Claim an item that another table owes, with its content and due date of now; an unknown one is recorded."""
        facts = asdict(new) | {"token": token, "expires_ms": expires_ms, "worker_id": worker_id}
        facts |= {"kind": "delivery", "retry_refused": retry_refused}
        return await self._database.write(
            lambda transaction, moment: _claim(transaction, "claim_owed_elsewhere", fenced(app, fence, moment, **facts))
        )

    async def intend(
        self, app: str, claim: DeliveryClaim, fence: LeaseFence | None, slack_at: EpochMs | None = None
    ) -> Intent | None:
        """Commit that the post is about to be tried; None: the claim or the lease is no longer ours."""

        def run(transaction: Transaction, moment: Moment) -> Intent | None:
            facts = _of(app, claim, fence, moment, expires_ms=claim.expires_ms, slack_at=slack_at)
            row = transaction.execute(_SQL["intend"], facts).fetchone()
            return None if row is None else intents.record(transaction, facts, row["attempts"])

        return await self._database.write(run)

    async def mark(
        self, app: str, claim: DeliveryClaim, posted_channel: str, ts: str, note: str | None, fence: LeaseFence | None
    ) -> bool:
        """Write the marker and settle all intents, guarded by the token; False: it landed nowhere."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, fence, moment, posted_channel=posted_channel, ts=ts, note=note)
            if transaction.execute(_SQL["mark"], facts).rowcount == 1:
                intents.settle_all(transaction, facts, "delivered")
                return True
            return transaction.execute(_SQL["is_marked"], facts).fetchone() is not None

        return await self._database.write(run)

    async def settle(self, app: str, claim: DeliveryClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied (refused, or looked up and absent)."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, None, moment)
            if transaction.execute(_SQL["is_claimed"], facts).fetchone() is None:
                return False
            return intents.settle(transaction, facts, intent.attempt, note)

        return await self._database.write(run)

    async def hand_back(self, app: str, claim: DeliveryClaim, note: str | None, *, set_aside: bool = False) -> bool:
        """Give up the claim without a marker, saying why; with `set_aside` it leaves the queue visibly."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, None, moment, note=note, set_aside=set_aside)
            return transaction.execute(_SQL["hand_back"], facts).rowcount == 1

        return await self._database.write(run)

    async def count_possible_duplicate(self, app: str, channel: str, item: str, note: str) -> None:
        """Count an acknowledgement that touched no row."""
        facts = {"app": app, "channel": channel, "item": item, "note": note}

        def run(transaction: Transaction, _: Moment) -> None:
            transaction.execute(_SQL["count_possible_duplicate"], facts)

        await self._database.write(run)

    async def requeue(self, app: str, channel: str, item: str | None = None) -> int:
        """Owe what was set aside again, one item or a whole channel's, due from now on; return how many."""

        def run(transaction: Transaction, moment: Moment) -> int:
            facts = {"app": app, "channel": channel, "item": item, "today_everywhere": _today_everywhere(moment.now)}
            count = transaction.execute(_SQL["requeue"], facts).rowcount
            if not count:
                _refuse_requeue(transaction, facts)
            return count

        return await self._database.write(run)

    async def get(self, app: str, channel: str, item: str) -> Delivery | None:
        """Return one delivery."""
        facts = {"app": app, "channel": channel, "items": json.dumps([item])}
        found = await self._database.look(lambda transaction, _: transaction.execute(_SQL["known"], facts).fetchone())
        return None if found is None else Delivery(*found)

    async def known(self, app: str, channel: str, items: Sequence[str]) -> tuple[Delivery, ...]:
        """Return those of these items that are recorded, in no particular order."""
        facts = {"app": app, "channel": channel, "items": json.dumps(list(items))}
        return await self._database.read(
            lambda transaction, _: tuple(Delivery(*row) for row in transaction.execute(_SQL["known"], facts)),
        )

    async def outstanding(self, app: str, channel: str, limit: int) -> tuple[Delivery, ...]:
        """Return what is in doubt in a channel, then what is owed to it, so many of each, newest first."""
        return await self._database.read(
            lambda transaction, _: (
                *_listed(transaction, app, channel, "in_doubt", limit),
                *_listed(transaction, app, channel, "owed", limit),
            )
        )

    async def list(self, app: str, channel: str | None, state: str | None, limit: int) -> tuple[Delivery, ...]:
        """Return deliveries, newest first; `state` is owed, delivered, in_doubt, set_aside or None for all."""
        return await self._database.look(lambda transaction, _: _listed(transaction, app, channel, state, limit))

    async def counts(self, app: str) -> dict[str, dict[str, int]]:
        """Return, per channel, how many deliveries are owed, delivered, in doubt and set aside."""

        def look(transaction: Transaction, _: Moment) -> dict[str, dict[str, int]]:
            counts: dict[str, dict[str, int]] = {}
            for channel, state, n in transaction.execute(_SQL["counts"], {"app": app}):
                counts.setdefault(channel, dict.fromkeys(STATES, 0))[state] = n
            for channel, n in transaction.execute(_SQL["counts_in_doubt"], {"app": app}):
                counts[channel]["in_doubt"] = n
                counts[channel]["owed"] -= n
            return counts

        return await self._database.look(look)


def statement_of(channel: str | None, state: str | None) -> tuple[Statement, str]:
    """Return the statement of a list and the constant piece that narrows it."""
    of_channel = "" if channel is None else " AND channel = :channel"
    if state == "in_doubt":
        return _SQL["list_in_doubt"], of_channel
    return _SQL["list"], of_channel + _IN_STATE[state]


def _listed(
    transaction: Transaction, app: str, channel: str | None, state: str | None, limit: int
) -> tuple[Delivery, ...]:
    statement, where = statement_of(channel, state)
    facts = {"app": app, "channel": channel, "limit": limit}
    return tuple(Delivery(*row) for row in transaction.execute(statement, facts, where=where))


def free_of(transaction: Transaction, worker_id: str) -> None:
    """Free every delivery claimed by a worker that is gone, inside the caller's transaction; its intents stay."""
    transaction.execute(_SQL["free_of"], {"worker_id": worker_id})


def _claim(transaction: Transaction, statement: str, facts: dict[str, Any]) -> DeliveryClaim | None:
    row = transaction.execute(_SQL[statement], facts).fetchone()
    if row is None:
        return None
    doubts = intents.unsettled(transaction, facts)
    return DeliveryClaim(
        facts["channel"], facts["item"], row["content"], facts["token"], facts["expires_ms"], row["attempts"], doubts
    )


def _of(app: str, claim: DeliveryClaim, fence: LeaseFence | None, moment: Moment, **facts: object) -> dict[str, Any]:
    own = {"kind": "delivery", "channel": claim.channel, "item": claim.item, "token": claim.token}
    return fenced(app, fence, moment, **own, **facts)


def _today_everywhere(now: EpochMs) -> str:
    """Return the latest date that has begun in every time zone."""
    return (to_datetime(now).date() - timedelta(days=1)).isoformat()


def _refuse_requeue(transaction: Transaction, facts: dict[str, Any]) -> None:
    """Raise why nothing was requeued, unless there was just nothing to requeue in the channel."""
    item, channel, app = facts["item"], facts["channel"], facts["app"]
    if transaction.execute(_SQL["is_there"], facts).fetchone() is None:
        what = "are no deliveries" if item is None else f"is no delivery {item}"
        raise NotFoundError(
            f"There {what} to {channel} in app {app}.",
            remedy="`kizami deliveries list` lists them.",
        )
    if item is not None:
        raise WrongStateError(
            f"Delivery {item} to {channel} is not set aside.",
            remedy="What is owed is posted at its turn, and what was delivered can't be delivered again.",
        )


def _in_order(items: Sequence[NewDelivery], added: set[tuple[Any, ...]]) -> tuple[bool, ...]:
    """Tell for each item whether it is new; a repetition inside one call is not."""
    answers = []
    for item in items:
        key = (item.channel, item.item)
        answers.append(key in added)
        added.discard(key)
    return tuple(answers)
