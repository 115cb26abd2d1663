"""The demo's app, as a user would write it: a board that is edited in place, and a notice for every turn to down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kizami.app.app import Kizami
from kizami.app.tick import Tick
from kizami.demo.source import Source
from kizami.engine.lease import LeaseSettings
from kizami.engine.settings import WorkerSettings
from kizami.slack import Cursor, Deliveries, Slack, StatusBoard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STATUS = "C0STATUS"
ALERTS = "C0ALERTS"
SCHEDULE = "mirror"
SHORT_WINDOWS = WorkerSettings(
    grace_ms=1_000, reap_ms=250, vouch_ms=1_000, stop_ms=5_000, lease=LeaseSettings(beat_ms=500, stale_ms=3_000)
)


def make_app(
    folder: Path, *, every: timedelta, lookup: bool, on_phase: Callable[[str, str], Awaitable[None]] | None
) -> Kizami:
    """Return the app over the databases in a folder; Slack's address and token come from the environment."""
    app = Kizami("demo", database_url=f"sqlite:///{folder / 'kizami.db'}", settings=SHORT_WINDOWS)
    source = Source(str(folder / "checks.db"))
    slack = Slack(on_phase=on_phase)
    board = StatusBoard(slack, "services", channel=STATUS, title="Services")
    notices = Deliveries(slack, channel=ALERTS, lookup=lookup, history_lag=timedelta(milliseconds=200))
    turns = Cursor("turns")

    @app.performer(timeout=timedelta(seconds=5))
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


__all__ = ["ALERTS", "SCHEDULE", "STATUS", "Tick", "make_app"]
