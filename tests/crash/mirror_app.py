"""The app whose processes mirror side by side: a board, and notices for the channel of alerts.

kizami run tests.crash.mirror_app:app

With MIRROR_HOLD the process says `held` at that point, once, and goes on when it gets a line: "fetch", or a phase of
a post and its item, as in "before_send second". MIRROR_ITEMS names the notices; without it each tick owes its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from typing import Final

from kizami import Kizami, LeaseSettings, Tick, WorkerSettings
from kizami.slack import Deliveries, Slack, StatusBoard

STATUS: Final = "C0STATUS"
ALERTS: Final = "C0ALERTS"
LEASE: Final = "mirror"
HELD: Final = "held"
SETTINGS: Final = WorkerSettings(reap_ms=200, vouch_ms=500, lease=LeaseSettings(beat_ms=200, stale_ms=1_000))


class Hold:
    """The point at which this process waits, once."""

    def __init__(self, point: str | None) -> None:
        self._point = point

    async def reach(self, phase: str, item: str = "") -> bool:
        """Wait here if this is the point; tell whether it was."""
        if f"{phase} {item}".strip() != self._point:
            return False
        self._point = None
        sys.stdout.write(f"{HELD}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        return True


def make_mirror() -> Kizami:
    """Return the app as its process's environment wants it."""
    app = Kizami("mirrored", settings=SETTINGS)
    hold = Hold(os.environ.get("MIRROR_HOLD"))
    items = os.environ.get("MIRROR_ITEMS", "").split()
    slack = Slack()

    async def observe(phase: str, item: str) -> None:
        await hold.reach(phase, item)

    async def fetch() -> list[dict[str, str]]:
        old = await hold.reach("fetch")
        return [{"row": "new"}, {"row": "old"}] if old else [{"row": "new"}]

    slack.on_phase = observe
    board = StatusBoard(slack, "rows", channel=STATUS, title="Rows")
    notices = Deliveries(slack, channel=ALERTS, history_lag=timedelta(0))

    @app.scheduled("second", every=timedelta(seconds=1), overlap="overlap", lease=LEASE)
    async def second(tick: Tick) -> int:
        await board.publish(await board.fetch(fetch))
        for item in items or [str(tick.scheduled_at_ms)]:
            await notices.add(item, f"{item} has happened")
        await notices.deliver()
        return os.getpid()

    return app


app = make_mirror() if os.environ.get("SLACK_API_URL") else Kizami("unused")
