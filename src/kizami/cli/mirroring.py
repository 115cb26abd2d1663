"""The app behind `kizami mirror`: one performer, one schedule, one status board."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kizami.app.app import Kizami
from kizami.app.performer import Performer
from kizami.cli.query import QueryError
from kizami.cli.waiting import wait_for_end
from kizami.core.errors import KizamiError
from kizami.core.states import JobState
from kizami.core.times import format_local
from kizami.core.zone import load_zone
from kizami.engine.context import current_job
from kizami.slack import BoardOutcome, Slack, StatusBoard

if TYPE_CHECKING:
    from kizami.cli.query import Query
    from kizami.core.zone import TimeZone

log = logging.getLogger("kizami.cli")

SCHEDULE: Final = "mirror"
ONCE: Final = "mirror_once"
_NEXT_TICK_REPAIRS: Final = frozenset({BoardOutcome.WAITING, BoardOutcome.IN_DOUBT})
_NEEDS_A_PERSON: Final = frozenset({BoardOutcome.REFUSED, BoardOutcome.PARKED, BoardOutcome.FAILED, BoardOutcome.OFF})
_SLACK_TIME: Final = timedelta(minutes=1)
_ONCE_MORE: Final = timedelta(minutes=1)
_AGAIN: Final = "Run the command again; it goes on from here."
_KIND: Final = re.compile(r"^[A-Za-z]+Error: ")


class NotShownError(KizamiError):
    """The rows are there, the board doesn't show them."""

    code = "board_not_shown"


@dataclass(frozen=True, slots=True)
class MirrorTiming:
    """When a mirror ticks; `time_zone` is also that of the times it shows."""

    crons: tuple[str, ...]
    every: timedelta | None
    time_zone: str | None


@dataclass(frozen=True, slots=True)
class Mirror:
    """An app whose jobs put the rows of a query on a board: at each tick of a schedule or, without one, once."""

    app: Kizami
    board: StatusBoard
    show: Performer[None, str]
    zone: TimeZone
    timeout: timedelta
    """What a tick may take: the query its limit, Slack a minute."""

    @classmethod
    def build(
        cls, query: Query, channel: str, title: str, name: str | None, timing: MirrorTiming, *, once: bool
    ) -> Mirror:
        """Return the app, nothing started. Raises DefinitionError and ConfigurationError."""
        name = name or default_name(channel, title)
        app = Kizami(name)
        zone = load_zone(timing.time_zone or "UTC")
        board = StatusBoard(Slack(), name, channel=channel, title=title, time_zone=zone.name)

        timeout = query.limit + _SLACK_TIME

        async def show() -> str:
            return await _show(board, query, once=once)

        if once:  # no schedule, and a binding of its own: a mirror of this name that runs elsewhere must not notice
            return cls(app, board, app.performer(binding=ONCE, max_attempts=1, timeout=timeout)(show), zone, timeout)
        performer = app.scheduled(
            SCHEDULE,
            cron=timing.crons or None,
            every=timing.every,
            time_zone=timing.time_zone if timing.crons else None,
            max_attempts=1,  # the next tick is the next attempt
            timeout=timeout,
        )(show)
        return cls(app, board, performer, zone, timeout)


def default_name(channel: str, title: str) -> str:
    """Return a name that the same channel and title always give, and others hardly ever."""
    digest = hashlib.sha256(f"{channel}\n{title}".encode()).hexdigest()[:8]
    return f"mirror-{re.sub('[^A-Za-z0-9_-]', '', channel)[:32]}-{digest}"


async def switch_on(mirror: Mirror) -> None:
    """Let a board that Slack's refusals had switched off try again: a person started this command."""
    async with mirror.app.running(worker=False):  # not app.boards: a board that isn't there, or isn't off, is no error
        await mirror.app.store.boards.switch_on(mirror.app.name, mirror.board.name, mirror.board.channel)


async def say_first_tick(mirror: Mirror) -> None:
    """Log when the running mirror ticks first: until then nothing is to be seen in Slack."""
    next_at = (await mirror.app.schedules.get(SCHEDULE)).next_at
    if next_at is not None:
        log.info("the rows are shown in %s first at %s", mirror.board.channel, format_local(next_at, mirror.zone))


async def mirror_once(mirror: Mirror) -> str | None:
    """Mirror once; return what went wrong, or None. Raises StoreError."""
    await switch_on(mirror)
    seconds = round((mirror.timeout + _ONCE_MORE).total_seconds())
    async with mirror.app.running(fires=False) as app:
        job = await wait_for_end(app, await mirror.show.enqueue(), seconds)
        if job is not None and job.state is JobState.COMPLETED:
            return None
        return f"The job didn't end in time. {_AGAIN}" if job is None or job.error is None else _KIND.sub("", job.error)


async def _show(board: StatusBoard, query: Query, *, once: bool) -> str:
    fetched = await board.fetch(lambda: asyncio.to_thread(_rows, query))
    outcome = await board.publish(fetched)
    if outcome in _NEEDS_A_PERSON or (once and outcome in _NEXT_TICK_REPAIRS):
        job = current_job()
        rows = await job.store.boards.list(job.app)
        note = next((row.note for row in rows if (row.name, row.channel) == (board.name, board.channel)), None)
        why = (note or outcome.value).rstrip(".")
        remedy = _AGAIN if outcome in _NEXT_TICK_REPAIRS else None
        raise NotShownError(f"The board in {board.channel} doesn't show the rows: {why}.", remedy=remedy)
    return outcome.value


def _rows(query: Query) -> list[dict[str, Any]]:
    answer = query.fetch(current_job().runtime)
    twice = next((name for name in answer.columns if answer.columns.count(name) > 1), None)
    if twice is not None:
        raise QueryError(
            f"Two columns of the query are named {twice}.", remedy="Name them apart with AS.", path="--query"
        )
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
