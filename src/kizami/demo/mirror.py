"""The demo's app, as a user would write it: a board that is edited in place, and a notice for every turn to down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kizami.app.app import Kizami
from kizami.demo.source import Source
from kizami.engine.lease import LeaseSettings
from kizami.engine.settings import WorkerSettings
from kizami.slack import Deliveries, Slack, StatusBoard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STATUS = "C0STATUS"
ALERTS = "C0ALERTS"
APP = "demo"
SCHEDULE = "mirror"
BATCH = 4
"""Notices a tick: as many as Slack takes in a burst, so that a tick stays short."""
SHORT_WINDOWS = WorkerSettings(
    grace_ms=1_000, reap_ms=250, vouch_ms=1_000, stop_ms=5_000, lease=LeaseSettings(beat_ms=500, stale_ms=3_000)
)


def database_url(folder: Path) -> str:
    """Return where the demo's app keeps what it remembers."""
    return f"sqlite:///{folder / 'kizami.db'}"


def make_app(
    folder: Path, *, every: timedelta, lookup: bool, on_phase: Callable[[str, str], Awaitable[None]] | None
) -> Kizami:
    """Return the app over the databases in a folder; Slack's address and token come from the environment."""
    app = Kizami(APP, database_url=database_url(folder), settings=SHORT_WINDOWS)
    source = Source(str(folder / "checks.db"))
    slack = Slack()
    slack.sdk()  # loads what the first call needs, while a spare worker still waits
    slack.on_phase = on_phase
    board = StatusBoard(slack, "services", channel=STATUS, title="Services", history_lag=timedelta(milliseconds=200))
    notices = Deliveries(slack, channel=ALERTS, batch=BATCH, lookup=lookup, history_lag=timedelta(milliseconds=200))
    turns = app.cursor("turns")

    @app.performer(timeout=timedelta(seconds=5), max_attempts=20)
    async def sync() -> None:
        rows = await board.fetch(source.latest)
        await board.publish(rows)
        async for turn in turns.rows(source.turns_down, position=lambda row: row["id"]):
            at = datetime.fromtimestamp(turn["checked_at_ms"] / 1000, UTC)
            text = f"{turn['service']} is down (check of {at:%Y-%m-%d %H:%M} UTC)"
            await notices.add(f"{turn['service']}-{turn['checked_at_ms']}", text=text)
        await notices.deliver()

    app.schedule(SCHEDULE, sync, every=every, lease=SCHEDULE)
    return app
