"""A worker keeps the house while it works."""

from __future__ import annotations

from datetime import timedelta

from kizami import Keep, Kizami, Tick, WorkerSettings
from kizami.testing.world import World

DAY_MS = 24 * 3_600_000


def test_a_ledger_stops_growing() -> None:
    """Of a daily schedule by age, of an hourly one by number."""
    settings = WorkerSettings(keep=Keep(ledger_ms=30 * DAY_MS, ledger_rows=100))
    app = Kizami(settings=settings)
    ticks: list[int] = []

    async def note(tick: Tick) -> None:
        ticks.append(tick.scheduled_at_ms)

    performer = app.performer()(note)
    app.schedule("daily", performer, cron="0 9 * * *")
    app.schedule("hourly", performer, cron="30 * * * *")
    with World(app) as world:
        world.run_for(timedelta(days=60))
        daily = world.wait(app.schedules.ledger("daily", limit=10_000))
        hourly = world.wait(app.schedules.ledger("hourly", limit=10_000))
    assert len(ticks) == 60 * 25
    assert len(daily) in {30, 31}
    assert 100 <= len(hourly) < 124  # a virtual worker looks around seldom
