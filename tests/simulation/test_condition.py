"""A worker whose parts don't do their work says so, is not ready, and floods no log."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.engine.condition import SILENT_MS, TROUBLED_MS, Condition
from kizami.testing import World
from tests.conformance.whole_store import StillClock

SECONDS = timedelta(seconds=1)


def test_a_part_is_in_trouble_after_a_while_and_well_after_one_success() -> None:
    clock = StillClock()
    condition = Condition(clock)
    firer = condition.part("firer", 1_000)
    firer.begin()
    firer.ailing("the disk is gone")
    clock.move(TROUBLED_MS - 1)
    firer.ailing("the disk is gone")
    assert not list(condition.troubles)
    clock.move(1)
    assert condition.troubles == ("The firer has failed for 10 s: the disk is gone.",)
    firer.well()
    assert not list(condition.troubles)


def test_a_part_that_does_not_move_is_in_trouble_unless_it_waits_for_work() -> None:
    clock = StillClock()
    condition = Condition(clock)
    firer, reporter, slow = condition.part("firer", 1_000), condition.part("reporter"), condition.part("slow", 60_000)
    condition.part("never begun", 1_000)
    for part in (firer, reporter, slow):
        part.begin()
    clock.move(SILENT_MS)
    assert condition.troubles == ("The firer has not moved for 60 s.",)


def test_a_trouble_is_told_at_once_then_less_and_less_often_then_its_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = StillClock()
    firer = Condition(clock).part("firer", 1_000)
    told: list[int] = []
    with caplog.at_level(logging.WARNING, "kizami.worker"):
        for second in range(3_600):
            firer.ailing("the disk is gone")
            told += [second] * len(caplog.records)
            caplog.clear()
            clock.move(1_000)
        firer.well()
    assert told[:8] == [0, 2, 6, 14, 30, 62, 126, 254]
    assert len(told) < 25
    assert caplog.messages == ["the firer works again, after 3600.0 s"]


def rename(path: Path, before: str, after: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"ALTER TABLE {before} RENAME TO {after}")


def test_a_worker_that_fires_nothing_is_in_trouble_and_shows_it(tmp_path: Path) -> None:
    """B043: a scheduler that answers but whose every look fails must not look healthy."""
    app = Kizami("shop")

    @app.scheduled("minutely", cron="* * * * *")
    async def minutely() -> None: ...

    path = tmp_path / "kizami.db"
    with World(app, database=str(path), settings=app.settings) as world:
        world.run_for(30 * SECONDS)
        assert not list(app.troubles)
        rename(path, "kizami_schedules", "astray")
        world.run_for(30 * SECONDS)
        assert ["The firer has failed for" in trouble for trouble in app.troubles] == [True]
        (row,) = world.wait(app.store.workers.list("shop"))
        assert row.note is not None
        assert "schedules can't be read now" in row.note
        rename(path, "astray", "kizami_schedules")
        world.run_for(5 * SECONDS)
        assert not list(app.troubles)
        (row,) = world.wait(app.store.workers.list("shop"))
        assert row.note is None


def test_an_outage_of_the_store_is_told_by_every_part_but_not_at_every_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Kizami("shop")

    @app.scheduled("minutely", cron="* * * * *")
    async def minutely() -> None: ...

    path = tmp_path / "kizami.db"
    with World(app, database=str(path), settings=app.settings) as world:
        world.run_for(5 * SECONDS)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        world.run_for(100 * SECONDS)
        assert any("reaper has failed" in trouble for trouble in app.troubles)
        other.execute("ROLLBACK")
        other.close()
        world.run_for(5 * SECONDS)
        assert not list(app.troubles)
    told = [record for record in caplog.records if "can't be looked at now" in record.getMessage()]
    assert 1 <= len(told) <= 8
    assert "the reaper works again" in caplog.text
