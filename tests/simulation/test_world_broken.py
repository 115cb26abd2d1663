"""A schedule that breaks while a worker runs: said once, mended by its code, and no other schedule notices."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kizami import Kizami
from kizami.testing.world import World
from tests.conformance.damaged import damage

SECONDS = timedelta(seconds=1)


def test_a_worker_mends_the_broken_schedules_of_its_code_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """B020: next to another that goes on."""
    app = Kizami()
    ticks: list[str] = []

    @app.performer
    async def note(payload: str) -> None:
        ticks.append(payload)

    for name in ("bad", "good"):
        app.schedule(name, note, payload=name, cron="* * * * *", time_zone="Europe/Berlin")
    with World(app, start="2026-03-01T12:00:30") as world:
        world.wait(damage(world.store, name="bad", app=app.name))
        world.run_for(180 * SECONDS)
        stored = world.wait(app.schedules.get("bad"))
    assert (sorted(ticks), stored.broken) == (["bad"] * 3 + ["good"] * 3, None)
    errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(errors) == 1
    assert errors[0].startswith("schedule bad is broken and doesn't fire: Time zone 'Europe/Atlantis'")
