"""One claimed delivery: earlier doubts are settled, an intent is committed, the message posted, the marker written."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kizami.engine.context import LeaseLost
from kizami.slack.error_codes import ErrorClass
from kizami.slack.errors import ApiError, NotSent, RateLimited, SlackError, Unclear
from kizami.slack.history import Finding, LookedUp
from kizami.slack.message import Message, from_json
from kizami.slack.posting import Posted, post

if TYPE_CHECKING:
    from kizami.slack.delivery_round import DeliveryRound
    from kizami.store.protocol import DeliveryClaim, Intent

log = logging.getLogger("kizami.slack.deliveries")

_UNCLEAR_IN_A_ROW: Final = 3
"""After so many lost answers in a row the rest is left to the next tick: each may have cost a whole timeout."""

_UNKNOWN_IN_A_ROW: Final = 3
"""After so many refusals in a row that nobody can read, it is hardly the items: the rest is left to the next tick."""


class ClaimedDelivery:
    """One claimed delivery. `close` gives the claim back when nothing else has ended it."""

    def __init__(self, round_: DeliveryRound, claim: DeliveryClaim) -> None:
        self._round = round_
        self._job = round_.job
        self._store = round_.store
        self._report = round_.report
        self._claim = claim
        self._delivery = f"{self._job.app}/{claim.channel}/{claim.item}"
        self._key = f"{round_.database_id}/{self._delivery}"
        self._note: str | None = None
        self._set_aside = False
        self._refusal: ApiError | None = None
        self._is_open = True

    async def close(self) -> None:
        """Give the claim back, with what there is to say, unless the marker has ended it."""
        if self._is_open:
            await self._store.hand_back(self._job.app, self._claim, self._note, set_aside=self._set_aside)

    async def deliver(self, since: int | None) -> None:
        """Settle earlier doubts, then post. `since` is Slack's time of the oldest doubt that the round knows."""
        if self._claim.unsettled and not await self._settle_doubts(since):
            return
        message = self._read_content()
        if message is None:
            return
        if not await self._post(message) and message.blocks and self._set_aside:
            # Blocks that Slack refuses must not cost the message: its text says the same.
            self._set_aside = False
            self._report.refused -= 1
            await self._post(replace(message, blocks=()))
        if self._refusal is not None and self._set_aside:
            self._round.count_refusal(self._refusal)

    def _read_content(self) -> Message | None:
        """Return the message to post; content that can't be read leaves the queue, or it would hold up the rest."""
        try:
            return from_json(self._claim.content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._set_aside = True
            self._report.refused += 1
            self._note = f"its stored content can't be read: {type(error).__name__}: {error}"
            log.error("%s is set aside: %s", self._delivery, self._note)  # noqa: TRY400 - the note says it all
            return None

    async def _settle_doubts(self, since: int | None) -> bool:
        """Find out whether an earlier attempt was accepted; True when a post is to follow."""
        if not self._round.settings.lookup:
            self._say_posted_again("look-ups are off")
            return True
        looked = await self._round.history.find(self._job, self._key, self._claim.unsettled, since, self._claim.lineage)
        match looked.finding:
            case Finding.FOUND:
                await self._adopt(looked)
            case Finding.ABSENT:
                for intent in self._claim.unsettled:
                    await self._store.settle(self._job.app, self._claim, intent, "looked up: absent")
            case Finding.UNREADABLE:
                self._say_posted_again(f"the history can't be read ({looked.reason})")
            case Finding.INCOMPLETE:
                self._note = f"in doubt; waits because the look-up is incomplete: {looked.reason}"
                self._report.waiting += 1
                log.info("%s waits: the look-up is incomplete: %s", self._delivery, looked.reason)
        return looked.finding in {Finding.ABSENT, Finding.UNREADABLE}

    def _say_posted_again(self, why: str) -> None:
        self._note = f"posted again after a lost answer, because {why}; a duplicate is possible"
        self._report.possible_duplicates += 1
        log.warning("%s is posted again after a lost answer, because %s: a duplicate is possible", self._delivery, why)

    async def _adopt(self, looked: LookedUp) -> None:
        assert looked.posted is not None  # noqa: S101 - what FOUND means
        note = None
        if looked.copies > 1:
            note = f"{looked.copies} copies are in the channel"
            log.warning("%s: %s", self._delivery, note)
        if await self._mark(looked.posted, note):
            self._report.adopted += 1
            self._round.spent += 1

    async def _post(self, message: Message) -> bool:
        """Commit the intent, ask the lease, post, mark."""
        intent = await self._store.intend(self._job.app, self._claim, self._job.fence, self._round.slack.now())
        if intent is None:
            await self._job.require_lease()
            self._report.taken += 1
            return False
        try:
            await self._job.require_lease()
            self._round.spent += 1
            posted = await post(
                self._round.slack,
                self._round.settings.channel,
                message,
                self._key,
                intent.attempt,
                self._claim.item,
                self._claim.lineage,
            )
        except LeaseLost:
            await self._store.settle(self._job.app, self._claim, intent, "not sent: the lease was lost")
            raise
        except SlackError as error:
            await self._refused(error, intent)
            return False
        self._round.unclear_in_a_row = self._round.unknown_in_a_row = self._round.refused_in_a_row = 0
        if posted.warnings:
            self._note = f"Slack warns: {', '.join(posted.warnings)}"
            log.warning("%s was delivered, but Slack warns: %s", self._delivery, ", ".join(posted.warnings))
        if await self._mark(posted, self._note):
            self._report.delivered += 1
        return True

    async def _mark(self, posted: Posted, note: str | None) -> bool:
        if await self._store.mark(self._job.app, self._claim, posted.channel, posted.ts, note, self._job.fence):
            self._is_open = False
            return True
        said = f"possible duplicate: the acknowledgement of {posted.ts} touched no row"
        log.warning("%s: %s", self._delivery, said)
        self._report.possible_duplicates += 1
        await self._store.count_possible_duplicate(self._job.app, self._claim.channel, self._claim.item, said)
        return False

    async def _refused(self, error: SlackError, intent: Intent) -> None:
        """Settle what wasn't applied, leave in doubt what may have been, stop where others would fare alike."""
        self._note = error.message
        if isinstance(error, Unclear):
            self._report.in_doubt += 1
            log.warning("%s is in doubt: %s", self._delivery, error)
            self._round.unclear_in_a_row += 1
            if self._round.unclear_in_a_row >= _UNCLEAR_IN_A_ROW:
                self._round.stop(error)
            return
        await self._store.settle(self._job.app, self._claim, intent, error.message)
        if isinstance(error, ApiError) and error.kind is ErrorClass.CONTENT:
            self._set_aside, self._refusal = True, error
            self._report.refused += 1
            log.error("%s is refused: %s", self._delivery, error)
            return
        if isinstance(error, RateLimited | NotSent):
            self._report.waiting += 1
        if isinstance(error, ApiError) and error.kind is ErrorClass.UNKNOWN:
            self._report.waiting += 1
            self._round.unknown_in_a_row += 1
            if self._round.unknown_in_a_row < _UNKNOWN_IN_A_ROW:
                log.error("%s stays owed: %s", self._delivery, error)
                return
        self._round.stop(error)
