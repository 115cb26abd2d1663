"""Status boards: one row and one message for each name in each channel."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kizami.store.protocol.deliveries import BoardClaim, BoardEdit, BoardPost, BoardRow, Intent
from kizami.store.rooms import intents
from kizami.store.rooms.intents import fenced
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.store.protocol.leases import LeaseFence
    from kizami.store.transaction import Database, Moment, Row, Transaction

_SQL = load("boards")


class BoardRoom:
    """Operations on status boards; see `BoardStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, app: str, name: str, channel: str, token: str, expires_ms: int, worker_id: str, fence: LeaseFence | None
    ) -> BoardClaim | None:
        """Claim a board's row, making it when it isn't there; None: somebody else has it, or the lease is lost."""
        who = {"token": token, "expires_ms": expires_ms, "worker_id": worker_id}

        def run(transaction: Transaction, moment: Moment) -> BoardClaim | None:
            facts = fenced(app, fence, moment, kind="board", channel=channel, item=name, **who)
            if transaction.execute(_SQL["claim"], facts).rowcount != 1:
                return None
            board = _board(transaction.execute(_SQL["list"], facts).fetchone())
            return BoardClaim(board, token, expires_ms, intents.unsettled(transaction, facts))

        return await self._database.write(run)

    async def intend_post(
        self,
        app: str,
        claim: BoardClaim,
        synced_at: EpochMs,
        fence: LeaseFence | None,
        slack_at: EpochMs | None = None,
    ) -> Intent | None:
        """Commit that a post will be tried; None: the claim or lease isn't ours, or newer data was tried."""

        def run(transaction: Transaction, moment: Moment) -> Intent | None:
            facts = _of(app, claim, fence, moment, synced_at=synced_at, slack_at=slack_at, is_post=1)
            row = transaction.execute(_SQL["intend"], facts).fetchone()
            return None if row is None else intents.record(transaction, facts, row["attempts"])

        return await self._database.write(run)

    async def intend_edit(self, app: str, claim: BoardClaim, synced_at: EpochMs, fence: LeaseFence | None) -> bool:
        """Commit that an edit will be tried; False: the claim or lease isn't ours, or newer data was tried."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, fence, moment, synced_at=synced_at, is_post=0)
            return transaction.execute(_SQL["intend"], facts).fetchone() is not None

        return await self._database.write(run)

    async def mark_posted(self, app: str, claim: BoardClaim, post: BoardPost, fence: LeaseFence | None) -> bool:
        """Keep the message's ts, settle all intents and end the claim; False: it landed nowhere."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, fence, moment, **asdict(post))
            if transaction.execute(_SQL["mark_posted"], facts).rowcount != 1:
                return False
            intents.settle_all(transaction, facts, "posted")
            return True

        return await self._database.write(run)

    async def mark_edited(self, app: str, claim: BoardClaim, edit: BoardEdit, fence: LeaseFence | None) -> bool:
        """Record an edit and end the claim; False: it landed nowhere."""
        return await self._land("mark_edited", app, claim, fence, **asdict(edit))

    async def settle(self, app: str, claim: BoardClaim, intent: Intent, note: str) -> bool:
        """Settle one intent as surely not applied."""

        def run(transaction: Transaction, moment: Moment) -> bool:
            facts = _of(app, claim, None, moment)
            if transaction.execute(_SQL["is_claimed"], facts).fetchone() is None:
                return False
            return intents.settle(transaction, facts, intent.attempt, note)

        return await self._database.write(run)

    async def forget_message(
        self, app: str, claim: BoardClaim, note: str, not_within_ms: int, fence: LeaseFence | None
    ) -> bool:
        """Give up a message for a new one; False: it was done within that time, or isn't ours to do."""
        return await self._land("forget_message", app, claim, fence, note=note, not_within_ms=not_within_ms)

    async def park(self, app: str, claim: BoardClaim, content_hash: str, note: str) -> bool:
        """Remember content that Slack refuses for good, so that it isn't tried again; ends the claim."""
        return await self._land("hand_back", app, claim, None, note=note, off=False, parked_hash=content_hash)

    async def hand_back(self, app: str, claim: BoardClaim, note: str | None, *, off: bool = False) -> bool:
        """Give up the claim, saying why; `off`: its channel can't be written to, as of now."""
        return await self._land("hand_back", app, claim, None, note=note, off=off, parked_hash=None)

    async def distrust(self, app: str, claim: BoardClaim, note: str, *, posted: bool) -> None:
        """Note that an acknowledgement touched no row: what is shown isn't known; a post may be a duplicate."""
        await self._land("distrust", app, claim, None, note=note, posted=posted)

    async def switch_on(self, app: str, name: str, channel: str) -> bool:
        """Let a board that is off be published again; False when it isn't off."""
        facts = {"app": app, "item": name, "channel": channel}
        return await self._database.write(
            lambda transaction, _: transaction.execute(_SQL["switch_on"], facts).rowcount == 1,
        )

    async def list(self, app: str) -> tuple[BoardRow, ...]:
        """Return the boards of an app by name and channel."""
        facts = {"app": app, "item": None, "channel": None}
        return await self._database.look(
            lambda transaction, _: tuple(_board(row) for row in transaction.execute(_SQL["list"], facts)),
        )

    async def _land(
        self, statement: str, app: str, claim: BoardClaim, fence: LeaseFence | None, **facts: object
    ) -> bool:
        def run(transaction: Transaction, moment: Moment) -> bool:
            return transaction.execute(_SQL[statement], _of(app, claim, fence, moment, **facts)).rowcount == 1

        return await self._database.write(run)


def free_of(transaction: Transaction, worker_id: str) -> None:
    """Free every board claimed by a worker that is gone, inside the caller's transaction; its intents stay."""
    transaction.execute(_SQL["free_of"], {"worker_id": worker_id})


def _board(row: Row) -> BoardRow:
    return BoardRow(**dict(row))


def _of(app: str, claim: BoardClaim, fence: LeaseFence | None, moment: Moment, **facts: object) -> dict[str, Any]:
    own = {"kind": "board", "channel": claim.board.channel, "item": claim.board.name}
    return fenced(app, fence, moment, **own, token=claim.token, expires_ms=claim.expires_ms, **facts)
