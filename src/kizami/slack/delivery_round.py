"""One deliver: takes what is due item by item and leaves each marked, waiting, in doubt or set aside."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kizami.slack.claimed_delivery import ClaimedDelivery
from kizami.slack.client import POST
from kizami.slack.error_codes import ErrorClass
from kizami.slack.errors import ApiError, RateLimited, SlackError
from kizami.slack.posting import CLAIM_MS
from kizami.store.protocol.deliveries import FIRST

if TYPE_CHECKING:
    from datetime import date

    from kizami.engine.context import JobContext
    from kizami.slack.client import Slack
    from kizami.slack.delivery_queue import DeliveryQueue
    from kizami.slack.history import History
    from kizami.store.protocol import DeliveryClaim, OwedDelivery

log = logging.getLogger("kizami.slack.deliveries")

_REFUSED_IN_A_ROW: Final = 5
"""After so many items that are refused for the same reason, it is what makes them: the rest stays owed."""


@dataclass(slots=True)
class DeliveryReport:
    """What a deliver did, in items; `stopped` is why it ended before its queue did, if it had to."""

    delivered: int = 0
    adopted: int = 0
    waiting: int = 0
    refused: int = 0
    in_doubt: int = 0
    set_aside: int = 0
    taken: int = 0
    """Claimed by somebody else in between."""
    possible_duplicates: int = 0
    stopped: SlackError | None = None


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """The choices of `Deliveries`."""

    channel: str
    max_age_days: int
    batch: int
    lookup: bool


class DeliveryRound:
    """A deliver in progress. Every way out of an item gives its claim back or ends it with the marker."""

    def __init__(
        self,
        job: JobContext,
        slack: Slack,
        history: History,
        settings: RoundSettings,
        until: date,
        queue: DeliveryQueue | None = None,
    ) -> None:
        self.job = job
        self.slack = slack
        self.history = history
        self.settings = settings
        self._until = until
        self.store: DeliveryQueue = job.store.deliveries if queue is None else queue
        self.database_id = ""
        self.spent = 0
        """Posts that were tried, and messages that were adopted: what the batch limits."""
        self.unclear_in_a_row = 0
        self.unknown_in_a_row = 0
        self.refused_in_a_row = 0
        self._refused_as = ""
        self.report = DeliveryReport()

    async def run(self) -> DeliveryReport:
        """Go through the queue until it ends, the batch is full, or Slack has to be left alone."""
        self.history.begin()
        self.database_id = await self.job.store.identity.database_id()
        await self._set_aside_old()
        place = FIRST
        while self._goes_on():
            page = await self._page(place)
            if not page:
                break
            place = page[-1]
            await self._deliver_page(page)
        if any(count for count in (self.report.delivered, self.report.adopted, self.report.waiting)):
            log.info("%s: %s", self.settings.channel, _counted(self.report))
        return self.report

    async def _page(self, after: OwedDelivery) -> tuple[OwedDelivery, ...]:
        limit = self.settings.batch
        return await self.store.owed(self.job.app, self.settings.channel, self._until.isoformat(), limit, after)

    async def _set_aside_old(self) -> None:
        await self.job.require_lease()
        days = self.settings.max_age_days
        before = (self._until - timedelta(days=days)).isoformat()
        count = await self.store.set_aside_old(
            self.job.app, self.settings.channel, before, f"due for more than {days} days", self.job.fence
        )
        self.report.set_aside = count
        if count:
            log.warning(
                "%s: %d deliveries are due for more than %d days and are set aside", self.settings.channel, count, days
            )

    async def _deliver_page(self, page: tuple[OwedDelivery, ...]) -> None:
        doubts = [place.slack_since for place in page if place.slack_since is not None]
        for place in page:
            if not self._goes_on():
                break
            if place.in_doubt_since is not None and self.settings.lookup and self.history.is_stuck:
                self.report.waiting += 1
                continue
            await self.slack.announce("between_items", place.item)
            self.job.heartbeat()
            await self._deliver_one(place, min(doubts, default=None))

    def _goes_on(self) -> bool:
        """Tell whether this deliver may try more: refused posts cost Slack as much as others."""
        return self.spent < self.settings.batch and self.report.stopped is None

    async def _deliver_one(self, place: OwedDelivery, since: int | None) -> None:
        await self.job.require_lease()
        wait_ms = await self.slack.gate_closed_for(POST, self.settings.channel)
        if wait_ms:
            self.stop(RateLimited(POST, wait_ms, gate=True))
            return
        try:
            await self.slack.introduce()
        except SlackError as error:
            self.report.waiting += 1
            self.stop(error)
            return
        claim = await self._claim(place)
        if claim is None:
            await self.job.require_lease()
            self.report.taken += 1
            return
        item = ClaimedDelivery(self, claim)
        try:
            await item.deliver(since)
        finally:
            await item.close()

    async def _claim(self, place: OwedDelivery) -> DeliveryClaim | None:
        job, token = self.job, self.job.runtime.entropy.token()
        return await self.store.claim(
            job.app, self.settings.channel, place.item, token, CLAIM_MS, job.worker_id, job.fence
        )

    def stop(self, error: SlackError) -> None:
        """End the deliver after this item: the others would fare alike."""
        self.report.stopped = error
        level = logging.ERROR if isinstance(error, ApiError) and error.kind is not ErrorClass.RETRY else logging.INFO
        log.log(level, "%s: left to the next tick: %s", self.settings.channel, error)

    def count_refusal(self, error: ApiError) -> None:
        """Stop when one item after the other is refused alike, before that sets the whole queue aside."""
        self.refused_in_a_row = self.refused_in_a_row + 1 if error.error == self._refused_as else 1
        self._refused_as = error.error
        if self.refused_in_a_row < _REFUSED_IN_A_ROW:
            return
        self.report.stopped = error
        log.error(
            "%s: %d items in a row are refused as %s, so the rest stays owed. Correct what makes the messages, then owe"
            " these again: kizami deliveries requeue.",
            self.settings.channel,
            self.refused_in_a_row,
            error.error,
        )


def _counted(report: DeliveryReport) -> str:
    counts = {
        "delivered": report.delivered,
        "adopted": report.adopted,
        "waiting": report.waiting,
        "in doubt": report.in_doubt,
        "refused": report.refused,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
