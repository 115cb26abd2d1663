from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from kizami import JobContext, Kizami, Tick, Window
from kizami.core.errors import DefinitionError, PayloadError
from kizami.testing import World, assert_ticks_within, run_performer


@dataclass
class Order:
    number: int


def test_run_performer_rebuilds_the_payload_and_gives_a_context() -> None:
    app = Kizami()

    @app.performer
    async def pack(payload: Order, ctx: JobContext) -> str:
        await app.runtime.clock.sleep(0)
        ctx.heartbeat(0.5)
        return f"{type(payload).__name__} {payload.number}, attempt {ctx.attempt}"

    assert run_performer(pack, Order(7), attempt=2) == "Order 7, attempt 2"
    with pytest.raises(PayloadError, match=r"Performer pack: payload\.number"):
        run_performer(pack, Order("seven"))  # type: ignore[arg-type]  # the wrong type is the point


def test_run_performer_gives_the_tick_of_a_scheduled_function_and_passes_errors_on() -> None:
    app = Kizami()

    @app.scheduled("report", cron="0 9 * * *", time_zone="Asia/Tokyo")
    def report(tick: Tick) -> str:
        if tick.local_date.day == 2:
            raise LookupError(tick.schedule)
        return f"{tick.scheduled_at:%Y-%m-%d %H:%M}"

    at = datetime(2026, 1, 1, 0, 0, tzinfo=UTC)
    assert run_performer(report, schedule="report", scheduled_at=at) == "2026-01-01 09:00"
    with pytest.raises(LookupError, match="report"):
        run_performer(report, schedule="report", scheduled_at=at + timedelta(days=1))


def test_assert_ticks_within_names_the_schedule_and_the_tick_outside() -> None:
    app = Kizami()

    @app.performer
    def post() -> None: ...

    with pytest.raises(DefinitionError, match="nothing to check"):
        assert_ticks_within(app)
    app.schedule("in", post, cron="*/15 8-20 * * *", time_zone="Asia/Tokyo", window=Window("08:00", "21:00"))
    assert_ticks_within(app)
    app.schedule("out", post, cron="0 22 * * *", time_zone="Asia/Tokyo", window=Window("08:00", "21:00"))
    with pytest.raises(AssertionError, match=r"Schedule out: It ticks at .* 22:00:00 Asia/Tokyo"):
        assert_ticks_within(app)


def test_a_world_gives_the_app_back_as_it_was() -> None:
    app = Kizami()
    before = app.runtime, app.settings
    with World(app) as world:
        assert world.now == datetime(2026, 1, 1, tzinfo=UTC)
        assert (app.runtime, app.settings) != before
    assert (app.runtime, app.settings) == before


def test_a_world_in_which_nothing_can_happen_any_more_says_so() -> None:
    app = Kizami()
    with World(app) as world:
        world.stop(app)
        with pytest.raises(RuntimeError, match="stands still"):
            world.wait(world.loop.create_future())  # type: ignore[arg-type]  # a future that nobody will answer
