"""How much one deliver tries: the batch counts what Slack is asked, and a run of refusals ends it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from kizami.core.errors import InvalidInputError
from kizami.sandbox.faults import Fault
from kizami.slack import Deliveries, UserTable
from kizami.slack.dates import days_of
from tests.simulation.mirror_world import ALERTS, World, mirror_world

POST = "chat.postMessage"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


async def owing(world: World, count: int, batch: int) -> Deliveries:
    made = Deliveries(world.slack, channel=ALERTS, batch=batch)
    for number in range(count):
        await made.add(f"item-{number}", f"notice {number}")
    return made


async def test_refused_posts_count_against_the_batch(world: World) -> None:
    queue = await owing(world, 9, batch=3)
    codes = ("no_text", "msg_too_long", "no_text")
    world.sandbox.faults.fail_next(POST, *(Fault.refused(code) for code in codes))
    report = await queue.deliver()
    assert (report.refused, report.delivered, world.calls(POST)) == (3, 0, 3)


async def test_refusals_in_a_row_for_one_reason_stop_the_deliver_and_leave_the_rest_owed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault in the code that makes the messages must not set the whole queue aside."""
    queue = await owing(world, 20, batch=50)
    world.sandbox.faults.fail_next(POST, *[Fault.refused("no_text")] * 20)
    report = await queue.deliver()
    assert (report.refused, world.calls(POST)) == (5, 5)
    assert report.stopped is not None
    (said,) = [record for record in caplog.records if "in a row" in record.message]
    assert said.levelno == logging.ERROR
    assert "kizami deliveries requeue" in said.message


async def test_refusals_for_different_reasons_or_with_successes_between_do_not_stop_it(world: World) -> None:
    queue = await owing(world, 20, batch=50)
    mixed = [Fault.refused("no_text"), Fault.refused("msg_too_long")] * 4
    world.sandbox.faults.fail_next(POST, *mixed)
    report = await queue.deliver()
    assert (report.refused, report.delivered, report.stopped) == (8, 12, None)


@pytest.mark.parametrize(("hours", "days"), [(0, 0), (1, 1), (24, 1), (36, 2), (48, 2)])
def test_a_part_of_a_day_counts_as_one(hours: int, days: int) -> None:
    assert days_of(timedelta(hours=hours)) == days


def test_no_queue_takes_a_negative_age(world: World) -> None:
    with pytest.raises(InvalidInputError):
        UserTable(
            world.slack, "sqlite:///x.db", table="orders", marker="ts", channel=ALERTS, max_age=timedelta(days=-1)
        )
