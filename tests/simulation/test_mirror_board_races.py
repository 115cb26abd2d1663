"""Boards that several hands publish: whoever is late, doubled or stopped, there is no loop of posts and no old data."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.sandbox.faults import Fault
from kizami.slack import BoardOutcome, Fetched, StatusBoard
from kizami.store.protocol import BoardRow
from tests.simulation.mirror_world import ALERTS, APP, STATUS, World, mirror_world

POST, UPDATE = "chat.postMessage", "chat.update"
OLD, NEW = ({"service": "web", "status": "up"},), ({"service": "web", "status": "down"},)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


def services(world: World, channel: str = STATUS, **options: Any) -> StatusBoard:
    return StatusBoard(world.slack, "services", channel=channel, **options)


async def sweep(world: World, board: StatusBoard, rows: tuple[object, ...] = OLD) -> BoardOutcome:
    """Fetch and publish, a minute after the last one."""
    world.clock.move(60_000)
    return await board.publish(await board.fetch(lambda: rows))


async def rows_of(world: World) -> list[BoardRow]:
    return list(await world.store.boards.list(APP))


def shows(world: World, channel: str = STATUS) -> str:
    (message,) = world.sandbox.workspace.messages(channel)
    return str(message.content.blocks)


async def test_two_definitions_of_one_name_in_two_channels_have_a_message_each(world: World) -> None:
    """Neither takes the board from the other, which would post anew at every tick, for ever."""
    here, there = services(world), services(world, ALERTS)
    for _ in range(20):
        await sweep(world, here)
        await sweep(world, there)
    assert (len(world.posted(STATUS)), len(world.posted(ALERTS))) == (1, 1)
    assert world.calls(UPDATE) == 38
    assert [(row.channel, row.posts) for row in await rows_of(world)] == [(ALERTS, 1), (STATUS, 1)]


async def test_a_board_that_moves_is_posted_once_in_its_new_channel_and_back_again_edited(world: World) -> None:
    assert await sweep(world, services(world)) is BoardOutcome.POSTED
    for outcome in (BoardOutcome.POSTED, BoardOutcome.EDITED, BoardOutcome.EDITED):
        assert await sweep(world, services(world, ALERTS)) is outcome
    assert await sweep(world, services(world)) is BoardOutcome.EDITED
    assert (len(world.posted(STATUS)), len(world.posted(ALERTS))) == (1, 1)


async def test_a_board_that_moves_after_a_lost_answer_does_not_look_for_its_post_in_the_new_channel(
    world: World,
) -> None:
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    assert await sweep(world, services(world)) is BoardOutcome.IN_DOUBT
    assert await sweep(world, services(world, ALERTS)) is BoardOutcome.POSTED
    assert await sweep(world, services(world)) is BoardOutcome.ADOPTED
    assert (len(world.posted(STATUS)), len(world.posted(ALERTS))) == (1, 1)


async def stopped_before_its_call(world: World, board: StatusBoard, fetched: Fetched) -> tuple[Any, asyncio.Event]:
    """Publish in a process that is stopped between its last look and its call; the event lets it go on."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def stop(phase: str, _item: str) -> None:
        if phase == "before_send":
            reached.set()
            await go_on.wait()

    async def publish() -> BoardOutcome:
        world.enter_job("stopped")
        return await board.publish(fetched)

    world.slack.on_phase = stop
    task = asyncio.create_task(publish())
    await reached.wait()
    world.slack.on_phase = None
    return task, go_on


@pytest.mark.parametrize("skip_unchanged", [True, False])
async def test_a_publisher_that_was_stopped_sends_one_old_edit_at_most_and_the_next_tick_mends_it(
    world: World, caplog: pytest.LogCaptureFixture, skip_unchanged: bool
) -> None:
    """What was in flight can't be called back; it is noticed, and no edit is saved as unchanged afterwards."""
    board = services(world, skip_unchanged=skip_unchanged)
    await sweep(world, board)
    stopped, go_on = await stopped_before_its_call(world, board, await board.fetch(lambda: OLD + OLD))
    world.clock.move(300_001)
    assert await sweep(world, board, NEW) is BoardOutcome.EDITED
    assert "down" in shows(world)
    go_on.set()
    with caplog.at_level(logging.WARNING):
        assert await stopped is BoardOutcome.IN_DOUBT
    assert "touched no row" in caplog.text
    assert "down" not in shows(world)
    assert await sweep(world, board, NEW) is BoardOutcome.EDITED
    assert "down" in shows(world)
    assert (len(world.posted(STATUS)), world.calls(UPDATE)) == (1, 3)


async def test_a_clock_set_back_stops_no_board_and_lets_nothing_old_through(world: World) -> None:
    """B065: by the clock alone, rows fetched after a step back look older than what is shown."""
    board = services(world, skip_unchanged=True)
    await sweep(world, board)
    world.clock.move(60_000)
    before_the_step = await board.fetch(lambda: OLD + OLD)
    assert await sweep(world, board, NEW) is BoardOutcome.EDITED
    world.clock.now -= 9 * 3_600_000
    assert await sweep(world, board, NEW) is BoardOutcome.EDITED
    assert await sweep(world, board, NEW) is BoardOutcome.UNCHANGED
    assert await board.publish(before_the_step) is BoardOutcome.OLDER
    assert "down" in shows(world)


async def test_a_first_post_whose_claim_was_taken_over_is_counted_as_a_possible_duplicate(world: World) -> None:
    board = services(world)
    stopped, go_on = await stopped_before_its_call(world, board, await board.fetch(lambda: OLD))
    world.clock.move(300_001)
    assert await sweep(world, board) is BoardOutcome.POSTED
    go_on.set()
    assert await stopped is BoardOutcome.IN_DOUBT
    (row,) = await rows_of(world)
    assert row.possible_duplicates == 1
    assert "possible duplicate" in str(row.note)


@pytest.mark.parametrize("fault", [Fault.answer_lost(), Fault.never_accepted()], ids=["accepted", "not-accepted"])
async def test_after_an_edit_of_unknown_outcome_no_edit_is_saved(world: World, fault: Fault) -> None:
    """The data goes back to what was shown last, but what is shown now nobody knows."""
    board = services(world, skip_unchanged=True)
    await sweep(world, board, OLD)
    world.sandbox.faults.fail_next(UPDATE, fault)
    assert await sweep(world, board, NEW) is BoardOutcome.IN_DOUBT
    assert await sweep(world, board, OLD) is BoardOutcome.EDITED
    assert "up" in shows(world)
    assert await sweep(world, board, OLD) is BoardOutcome.UNCHANGED


async def test_the_stamp_of_unchanged_rows_never_gets_older_than_the_alarm(world: World) -> None:
    """Whatever the time between ticks: an edit goes out at the first tick at which half the alarm has passed."""
    board = services(world, skip_unchanged=True, freshness=timedelta(minutes=30))
    await sweep(world, board)
    for minutes in (1, 14, 1, 7, 9, 14, 13, 16, 40, 15, 14):
        world.clock.move((minutes - 1) * 60_000)
        (before,) = await rows_of(world)
        outcome = await sweep(world, board)
        assert before.synced_at is not None
        is_due = world.clock.now - before.synced_at >= 15 * 60_000
        assert outcome is (BoardOutcome.EDITED if is_due else BoardOutcome.UNCHANGED)


async def test_a_board_s_post_in_the_dark_says_so_on_the_board(world: World) -> None:
    """B086: an unreadable history costs one visible duplicate, and it is said."""
    board = services(world)
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await sweep(world, board)
    world.sandbox.faults.fail_next("conversations.history", Fault.refused("missing_scope"))
    assert await sweep(world, board) is BoardOutcome.POSTED
    (row,) = await rows_of(world)
    assert "missing_scope" in str(row.note)
    assert len(world.posted(STATUS)) == 2


async def test_a_warning_at_a_board_s_post_is_said_on_the_board(world: World) -> None:
    """B083."""
    world.sandbox.faults.fail_next(POST, Fault.with_warning("message_truncated"))
    assert await sweep(world, services(world)) is BoardOutcome.POSTED
    (row,) = await rows_of(world)
    assert "message_truncated" in str(row.note)
