"""What can only be known with a clock is checked when definitions are put in force: before the first tick, by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami import DefinitionError, JobContext, Kizami, Tick, Window
from kizami.store.protocol import FireOutcome
from kizami.testing import World

BERLIN = "Europe/Berlin"
DAY = Window("08:00", "18:00", time_zone=BERLIN)


def app_at(path: Path, **schedule: Any) -> Kizami:
    app = Kizami("shop", database_url=f"sqlite:///{path / 'kizami.db'}")

    @app.scheduled("s", **schedule)
    async def work() -> None: ...

    return app


async def test_a_schedule_that_leaves_its_window_under_some_offset_does_not_start(tmp_path: Path) -> None:
    """SPEC 5.1: 17:30 UTC is 18:30 in Berlin's winter and 19:30 in its summer, both outside."""
    app = app_at(tmp_path, cron="30 17 * * *", window=DAY)
    with pytest.raises(DefinitionError, match="Schedule s: It ticks at") as caught:
        async with app.running():
            raise AssertionError
    assert str(caught.value).count("outside its window 08:00-18:00") == 2
    assert caught.value.facts["field"] == "window"
    async with app.running(worker=False):
        assert await app.schedules.list() == ()


async def test_nor_does_an_external_clock_put_it_in_force(tmp_path: Path) -> None:
    app = app_at(tmp_path, cron="30 17 * * *", window=DAY, driver="external")
    async with app.running(worker=False):
        with pytest.raises(DefinitionError, match="outside its window"):
            await app.schedules.tick("s", datetime(2026, 1, 1, 17, 30, tzinfo=UTC))
        assert await app.schedules.list() == ()


async def test_a_schedule_inside_its_window_starts(tmp_path: Path) -> None:
    app = app_at(tmp_path, cron="0 9-16 * * *", window=DAY, time_zone=BERLIN)
    async with app.running():
        assert [each.name for each in await app.schedules.list()] == ["s"]


def test_a_daily_interval_counts_from_its_stored_phase(tmp_path: Path) -> None:
    """It was registered at noon; a start at night changes no tick and so finds nothing."""
    database = str(tmp_path / "kizami.db")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with World(app_at(tmp_path, every=timedelta(days=1), window=DAY), database=database, start=noon):
        pass
    late = datetime(2026, 1, 1, 23, tzinfo=UTC)
    with World(app_at(tmp_path, every=timedelta(days=1), window=DAY), database=database, start=late) as world:
        world.run_for(timedelta(seconds=5))
    with (
        pytest.raises(DefinitionError, match="outside its window"),
        World(app_at(tmp_path, every=timedelta(days=1), window=DAY), start=late),
    ):
        raise AssertionError


def test_an_interval_that_wanders_through_the_day_is_refused_where_it_is_defined(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="doesn't divide 24 hours"):
        app_at(tmp_path, every=timedelta(hours=5), window=DAY)


async def test_an_external_clock_may_deliver_the_tick_that_brought_it_up(tmp_path: Path) -> None:
    """Its first delivery is what registers the schedule: it comes a little after its planned time."""
    app = app_at(tmp_path, cron="* * * * *", driver="external")
    async with app.running(worker=False):
        assert (await app.schedules.tick("s")).outcome is FireOutcome.FIRED


@pytest.mark.parametrize("annotated", [True, False])
def test_tick_and_context_are_given_by_name_where_they_have_no_annotation(annotated: bool) -> None:
    app = Kizami("shop")
    seen: list[object] = []

    async def work(tick: Tick, ctx: JobContext) -> None:
        seen.extend((tick, ctx))

    if not annotated:
        work.__annotations__.clear()
    app.scheduled("s", cron="* * * * *")(work)
    with World(app) as world:
        world.run_for(timedelta(seconds=61))
    assert [type(each) for each in seen] == [Tick, JobContext]


async def test_a_parameter_of_another_type_is_the_payload_whatever_its_name() -> None:
    app = Kizami("shop")

    @app.performer
    async def count(tick: int) -> int:
        return tick

    assert count.job(5).new.payload == "5"
