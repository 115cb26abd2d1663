"""The app whose processes are killed: its jobs append lines to a file.

python -m tests.crash.sigkill_app DATABASE_URL NOTES
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kizami import Backoff, JobContext, Kizami, LeaseSettings, Performer, Tick, WorkerSettings

SETTINGS = WorkerSettings(reap_ms=200, vouch_ms=500, lease=LeaseSettings(beat_ms=200, stale_ms=1_000))


@dataclass(frozen=True, slots=True)
class Victim:
    """The app and its performers. The payload is how long a job takes, in seconds."""

    app: Kizami
    again: Performer[float, None]
    once: Performer[float, None]


def make_victim(database_url: str, notes: Path) -> Victim:
    """Return the app on a database; whatever its jobs do becomes a line in `notes`."""
    app = Kizami("victim", database_url=database_url, settings=SETTINGS)

    def note(*words: object) -> None:
        line = " ".join(map(str, (*words, os.getpid()))) + "\n"
        with notes.open("a", encoding="utf-8") as file:
            file.write(line)

    @app.performer(max_attempts=1_000, backoff=Backoff.fixed(timedelta(0)))
    async def again(payload: float, ctx: JobContext) -> None:
        note("again", ctx.job_id)
        await app.runtime.clock.sleep(payload)

    @app.performer(guarantee="at-most-once", max_attempts=1_000)
    async def once(payload: float, ctx: JobContext) -> None:
        note("once", ctx.job_id)
        await app.runtime.clock.sleep(payload)

    @app.scheduled("second", every=timedelta(seconds=1), max_attempts=1_000)
    async def second(tick: Tick) -> None:
        note("tick", tick.scheduled_at_ms)

    @app.scheduled("hold", cron="0 0 1 1 *", lease="held", driver="external")
    async def hold(ctx: JobContext) -> None:
        for _ in range(200):
            await ctx.require_lease()
            note("hold", ctx.job_id)
            await app.runtime.clock.sleep(0.05)

    return Victim(app, again, once)


async def _work(database_url: str, notes: Path) -> None:
    async with make_victim(database_url, notes).app.running():
        sys.stdout.write("working\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], Path(sys.argv[2])))
