from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.engine.context import LeaseLost
from kizami.sandbox.faults import Fault
from kizami.slack import BoardOutcome, Fetched, StatusBoard
from kizami.store.protocol import BoardRow
from tests.simulation.mirror_world import STATUS, World, mirror_world

POST, UPDATE = "chat.postMessage", "chat.update"
ROWS = ({"service": "web", "status": "up"}, {"service": "mail", "status": "down"})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


def services(world: World, **options: Any) -> StatusBoard:
    return StatusBoard(world.slack, "services", channel=STATUS, title="Services", **options)


async def sweep(world: World, board: StatusBoard, rows: tuple[object, ...] = ROWS) -> BoardOutcome:
    """Fetch and publish, a quarter of an hour after the last one."""
    world.clock.move(900_000)
    return await board.publish(await board.fetch(lambda: rows))


async def row(world: World) -> BoardRow:
    (found,) = await world.store.boards.list("shop")
    return found


def shown(world: World) -> list[Any]:
    return world.sandbox.log.posts(STATUS)


async def test_a_board_is_posted_once_and_edited_ever_after(world: World) -> None:
    board = services(world)
    assert await sweep(world, board) is BoardOutcome.POSTED
    for _ in range(5):
        assert await sweep(world, board) is BoardOutcome.EDITED
    assert len(shown(world)) == 1
    assert len(world.sandbox.log.edits(STATUS, (await row(world)).ts)) == 5


async def test_last_synced_is_the_time_of_the_fetch_with_zone_and_offset(world: World) -> None:
    board = services(world, time_zone="Asia/Tokyo")
    fetched = await board.fetch(lambda: ROWS)
    world.clock.move(3_600_000)
    await board.publish(fetched)
    assert str(shown(world)[0].text).endswith("Last synced: 2026-05-29 05:26:40 Asia/Tokyo (GMT+09:00)")
    assert (await row(world)).synced_at == fetched.fetched_at


async def test_a_failed_query_leaves_the_old_stamp_and_no_rows_gives_a_new_one(world: World) -> None:
    board = services(world)
    await sweep(world, board)

    async def broken() -> list[object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await board.fetch(broken)
    before = await row(world)
    assert await sweep(world, board, ()) is BoardOutcome.EDITED
    edit = world.sandbox.log.edits(STATUS)[-1]
    assert "no rows" in str(edit.text)
    after = await row(world)
    assert after.synced_at is not None
    assert before.synced_at is not None
    assert after.synced_at > before.synced_at


async def test_older_data_never_overwrites_newer(world: World) -> None:
    """Also when the newer edit's answer was lost: it may be what people see."""
    board = services(world)
    await sweep(world, board)
    older = await board.fetch(lambda: ROWS)
    world.clock.move(1_000)
    newer = await board.fetch(lambda: ROWS)
    world.sandbox.faults.fail_next(UPDATE, Fault.answer_lost())
    assert await board.publish(newer) is BoardOutcome.IN_DOUBT
    assert await board.publish(older) is BoardOutcome.OLDER
    assert await board.publish(newer) is BoardOutcome.EDITED


@pytest.mark.parametrize(
    "fault", [Fault.answer_lost(), Fault.never_accepted(), Fault.server_error(500, accepted=True), Fault.html_page()]
)
async def test_a_first_post_whose_answer_is_lost_makes_one_board(world: World, fault: Fault) -> None:
    """B076."""
    board = services(world)
    world.sandbox.faults.fail_next(POST, fault)
    assert await sweep(world, board) is BoardOutcome.IN_DOUBT
    assert await sweep(world, board) in {BoardOutcome.ADOPTED, BoardOutcome.POSTED}
    assert await sweep(world, board) is BoardOutcome.EDITED
    assert len(shown(world)) == 1


@pytest.mark.parametrize(
    ("phase", "outcome"), [("answered", BoardOutcome.ADOPTED), ("before_send", BoardOutcome.POSTED)]
)
async def test_a_crash_around_the_first_post_makes_one_board(world: World, phase: str, outcome: BoardOutcome) -> None:
    """B076: the same for the board."""
    board = services(world)

    async def publish() -> None:
        await board.publish(await board.fetch(lambda: ROWS))

    await world.die_at(phase, publish)
    assert await sweep(world, board) is outcome
    assert len(shown(world)) == 1


async def test_an_incomplete_look_up_makes_the_board_wait(world: World) -> None:
    board = services(world)
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await sweep(world, board)
    world.sandbox.faults.fail_next("conversations.history", Fault.rate_limited(60))
    assert await sweep(world, board) is BoardOutcome.WAITING
    assert "incomplete" in str((await row(world)).note)
    assert await sweep(world, board) is BoardOutcome.ADOPTED
    assert len(shown(world)) == 1


@dataclass
class Refusing:
    """What a hundred sweeps find when each edit is refused."""

    error: str
    posts: int
    calls_at_most: int


@pytest.mark.parametrize(
    "case",
    [
        Refusing("cant_update_message", 1, 101),
        Refusing("edit_window_closed", 1, 101),
        Refusing("is_archived", 0, 25),
        Refusing("channel_not_found", 0, 25),
        Refusing("msg_too_long", 0, 2),
        Refusing("invalid_blocks", 0, 2),
    ],
    ids=lambda case: case.error,
)
async def test_an_edit_refused_for_good_never_makes_a_post_for_each_sweep(world: World, case: Refusing) -> None:
    """B079: each reason has its own answer, and a hundred sweeps make one post at most."""
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, *[Fault.refused(case.error)] * 200)
    for _ in range(100):
        await sweep(world, board)
    assert len(shown(world)) == 1 + case.posts
    assert world.calls(UPDATE) <= case.calls_at_most


async def test_a_deleted_message_is_posted_anew_once_and_then_edited(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """B079."""
    board = services(world)
    await sweep(world, board)
    old = (await row(world)).ts
    world.sandbox.faults.fail_next(UPDATE, Fault.refused("message_not_found"))
    with caplog.at_level(logging.WARNING):
        assert await sweep(world, board) is BoardOutcome.POSTED
    assert "message_not_found" in caplog.text
    for _ in range(100):
        assert await sweep(world, board) is BoardOutcome.EDITED
    assert len(shown(world)) == 2
    assert (await row(world)).ts != old


async def test_deletions_cost_at_most_one_post_an_hour(world: World) -> None:
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, *[Fault.refused("message_not_found")] * 100)
    for _ in range(40):
        await sweep(world, board)
    assert len(shown(world)) == 1 + 10


async def test_a_board_that_is_off_says_so_and_comes_back_when_switched_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """B079."""
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, Fault.refused("is_archived"))
    assert await sweep(world, board) is BoardOutcome.OFF
    assert (await row(world)).off
    assert [record.levelname for record in caplog.records if "is off" in record.message] == ["ERROR"]
    assert await sweep(world, board) is BoardOutcome.OFF
    await world.store.boards.switch_on("shop", "services", STATUS)
    assert await sweep(world, board) is BoardOutcome.EDITED


async def test_a_board_that_is_off_is_tried_again_once_an_hour(world: World) -> None:
    """Nobody tells us that the bot was invited or the channel unarchived."""
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, *[Fault.refused("not_in_channel")] * 2)
    assert [await sweep(world, board) for _ in range(3)] == [BoardOutcome.OFF] * 3
    world.clock.move(3_600_000)
    assert [await sweep(world, board) for _ in range(3)] == [BoardOutcome.OFF] * 3
    assert world.calls(UPDATE) == 2
    world.clock.move(3_600_000)
    assert await sweep(world, board) is BoardOutcome.EDITED
    assert not (await row(world)).off


async def test_parked_content_is_tried_again_when_it_changes(world: World) -> None:
    """B079, B089: the smaller rendering once, then parked."""
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, *[Fault.refused("invalid_blocks")] * 2)
    assert await sweep(world, board) is BoardOutcome.PARKED
    assert await sweep(world, board) is BoardOutcome.PARKED
    assert world.calls(UPDATE) == 2
    assert await sweep(world, board, ({"service": "web", "status": "up"},)) is BoardOutcome.EDITED


async def test_a_refused_table_becomes_plain_sections_in_the_same_sweep(world: World) -> None:
    """B089: never a lost message."""
    board = services(world)
    world.sandbox.faults.fail_next(POST, Fault.refused("invalid_blocks"))
    assert await sweep(world, board) is BoardOutcome.POSTED
    assert len(shown(world)) == 1
    assert (await row(world)).in_doubt_since is None


async def test_unchanged_rows_are_skipped_until_half_the_freshness_alarm(world: World) -> None:
    board = services(world, skip_unchanged=True, freshness=timedelta(hours=1))
    await sweep(world, board)
    assert await sweep(world, board) is BoardOutcome.UNCHANGED
    assert await sweep(world, board) is BoardOutcome.EDITED
    assert await sweep(world, board, (*ROWS, {"service": "db", "status": "up"})) is BoardOutcome.EDITED


async def test_two_publishers_make_one_board(world: World) -> None:
    """The row is claimed before the first post."""
    board = services(world)
    outcomes: list[BoardOutcome] = []

    async def another(phase: str, _item: str) -> None:
        if phase == "before_send" and not outcomes:
            outcomes.append(BoardOutcome.TAKEN)
            outcomes.append(await services(world).publish(Fetched(ROWS, world.clock.now)))

    world.slack.on_phase = another
    assert await sweep(world, board) is BoardOutcome.POSTED
    assert outcomes == [BoardOutcome.TAKEN] * 2
    assert len(shown(world)) == 1


async def test_a_lost_lease_stops_before_the_edit(world: World) -> None:
    board = services(world)
    await sweep(world, board)
    world.enter_job(lease=await world.take_lease("run-1"))
    fetched = await board.fetch(lambda: ROWS)
    world.clock.move(600_001)
    await world.take_lease("run-2")
    with pytest.raises(LeaseLost):
        await board.publish(fetched)
    assert world.calls(UPDATE) == 0


async def test_rate_limited_edits_wait_for_the_next_tick(world: World) -> None:
    board = services(world)
    await sweep(world, board)
    world.sandbox.faults.fail_next(UPDATE, Fault.rate_limited(1_000))
    assert await sweep(world, board) is BoardOutcome.WAITING
    assert await sweep(world, board) is BoardOutcome.WAITING
    assert world.calls(UPDATE) == 1
    assert await sweep(world, board) is BoardOutcome.EDITED


async def test_five_hundred_rows_fit_and_say_what_was_cut(world: World) -> None:
    """B080, B089."""
    board = services(world, urgent=lambda record: record["status"] == "down")
    rows = tuple({"service": f"s{number}", "status": "down" if number == 499 else "up"} for number in range(500))
    assert await sweep(world, board, rows) is BoardOutcome.POSTED
    assert world.calls(POST) == 1
