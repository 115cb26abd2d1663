"""A status board: one message, posted once and edited in place ever after."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kizami.core.names import require_name
from kizami.core.times import to_ms
from kizami.engine.context import current_job
from kizami.slack.board_publish import BoardOutcome, BoardSettings, Showing, publish_board
from kizami.slack.board_view import render, render_smaller, stamp, view_of
from kizami.slack.dates import job_zone
from kizami.slack.history import History
from kizami.slack.posting import require_channel

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.slack.client import Slack
    from kizami.slack.message import Message

_LAG = timedelta(seconds=5)
_HALF_AN_HOUR = timedelta(minutes=30)
Query = Callable[[], "Iterable[Any] | Awaitable[Iterable[Any]]"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows, and when asking for them began (epoch ms by the store's clock): what they show is at least that new."""

    rows: tuple[Any, ...]
    fetched_at: EpochMs


class StatusBoard:
    """One message in a channel that shows rows as they were when last fetched.

    A board is known by its name and channel: in another channel it is another one, with a message of its own.

    `columns` orders and limits the columns, otherwise the rows' own are shown; `render` makes a Message from rows
    instead. `urgent` tells rows that are shown first, so that they are not the ones cut. `skip_unchanged` saves edits
    that would only change the stamp, until half of `freshness` has passed. `time_zone`: of the times shown; the
    schedule's by default. Raises DefinitionError for a name or channel id that isn't one.
    """

    def __init__(
        self,
        slack: Slack,
        name: str,
        *,
        channel: str,
        title: str | None = None,
        columns: Sequence[str] | None = None,
        skip_unchanged: bool = False,
        freshness: timedelta = _HALF_AN_HOUR,
        render: Callable[[Sequence[Any]], Message] | None = None,
        urgent: Callable[[Any], bool] | None = None,
        time_zone: str | None = None,
        history_lag: timedelta = _LAG,
    ) -> None:
        self.name = require_name("Status board", name)
        self.channel = require_channel("Status board", channel)
        self._slack = slack
        self._title = title or name
        self._columns = columns
        self._own_render = render
        self._urgent = urgent
        self._time_zone = time_zone
        half_ms = to_ms(freshness, name="freshness", least_ms=2) // 2
        self._settings = BoardSettings(name, channel, half_ms if skip_unchanged else None)
        self._lag_ms = to_ms(history_lag, name="history_lag", least_ms=0)
        self._histories: dict[str, History] = {}

    async def fetch(self, query: Query) -> Fetched:
        """Call (and await) the query and remember when. What it raises is raised here, and the old stamp stays."""
        fetched_at = await current_job().store.schedules.now()
        rows = query()
        return Fetched(tuple(await rows if inspect.isawaitable(rows) else rows), fetched_at)

    async def publish(self, rows: Fetched) -> BoardOutcome:
        """Show rows: posts the message the first time and edits it ever after; asks the lease before each effect.

        Never raises for what Slack answers: the outcome, the board's note and the log say it.
        """
        job = current_job()
        zone = await job_zone(job, self._time_zone)
        ordered = _urgent_first(rows.rows, self._urgent)
        view = view_of(self._title, ordered, self._columns, zone)
        full = self._own_render(ordered) if self._own_render else render(view)
        history = self._histories.setdefault(job.app, History(self._slack, self.channel, lag_ms=self._lag_ms))
        showing = Showing((full, render_smaller(view)), stamp(rows.fetched_at, zone), rows.fetched_at)
        return await publish_board(job, self._slack, history, self._settings, showing)


def _urgent_first(rows: tuple[Any, ...], urgent: Callable[[Any], bool] | None) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=lambda row: not urgent(row))) if urgent else rows
