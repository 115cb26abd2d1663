"""Deliveries: things owed to a channel, each posted once and marked only after Slack accepted it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from kizami.core.errors import InvalidInputError
from kizami.core.times import to_ms
from kizami.engine.context import LeaseLost, current_job
from kizami.engine.gathering import gather
from kizami.slack.dates import days_of, job_date, job_zone
from kizami.slack.delivery_round import DeliveryReport, DeliveryRound, RoundSettings
from kizami.slack.history import History
from kizami.slack.message import message
from kizami.slack.posting import require_channel
from kizami.slack.text import escape
from kizami.store.protocol import NewDelivery

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from kizami.slack.blocks import Block
    from kizami.slack.client import Slack

_ITEM_MAX = 200
_WEEK = timedelta(days=7)
_LAG = timedelta(seconds=5)


class Deliveries:
    """What a channel is owed. The missing marker is the queue: `add` fills it, `deliver` empties it.

    `max_age`: due for more days, an item is set aside visibly. `batch`: posts a deliver makes. `lookup=False` posts
    again after a lost answer instead of looking for the message first. `history_lag`: how long after an attempt its
    message may take to appear in the history. `time_zone`: whose date is meant by due; the schedule's by default.
    Raises DefinitionError for a channel that isn't an id, InvalidInputError for a negative length.
    """

    def __init__(
        self,
        slack: Slack,
        *,
        channel: str,
        max_age: timedelta = _WEEK,
        batch: int = 50,
        lookup: bool = True,
        history_lag: timedelta = _LAG,
        time_zone: str | None = None,
    ) -> None:
        self.channel = require_channel("Deliveries", channel)
        self._slack = slack
        self._time_zone = time_zone
        self._lag_ms = to_ms(history_lag, name="history_lag", least_ms=0)
        self._settings = RoundSettings(self.channel, days_of(max_age), max(1, batch), lookup)
        self._histories: dict[str, History] = {}

    async def add(
        self,
        item: str,
        text: str,
        blocks: Sequence[Block] | None = None,
        due: date | None = None,
        *,
        markup: bool = False,
    ) -> bool:
        """Owe a message to the channel, once for each `item`; False when it is owed or delivered already.

        `text` is shown as it is and pings nobody, unless `markup` says that it is mrkdwn, escaped where it must be.
        `due` is a local date, the tick's by default. In a cursor's loop it lands when the cursor moves, and
        the answer is that of now: another process may add the item before. Raises InvalidInputError for an item or
        content that can't be sent.
        """
        job = current_job()
        content = message(text if markup else escape(text), blocks)
        day = due or await job_date(job, await job_zone(job, self._time_zone))
        new = NewDelivery(self.channel, _item(item), content.to_json(), day.isoformat())
        is_first = gather(new)
        if is_first is not None:
            return is_first and not await job.store.deliveries.known(job.app, self.channel, [new.item])
        await job.require_lease()
        added = await job.store.deliveries.add(job.app, [new], None, job.fence)
        if added is None:
            raise LeaseLost
        return added[0]

    async def deliver(self) -> DeliveryReport:
        """Post what is due, by due date then order of adding; asks the lease before each post and marks after each.

        Never raises for what Slack answers: the report says it, and what is owed is owed at the next tick.
        """
        job = current_job()
        history = self._histories.setdefault(job.app, History(self._slack, self.channel, lag_ms=self._lag_ms))
        until = await job_date(job, await job_zone(job, self._time_zone))
        return await DeliveryRound(job, self._slack, history, self._settings, until).run()


def _item(item: object) -> str:
    if isinstance(item, str) and 0 < len(item) <= _ITEM_MAX and item.isprintable():
        return item
    raise InvalidInputError(
        f"{item!r} can't name a delivery.",
        remedy=f"Use 1 to {_ITEM_MAX} printable characters that are the same whenever the same thing is meant.",
        path="item",
    )
