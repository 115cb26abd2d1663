from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kizami.core.errors import CursorMovedError, InvalidInputError
from kizami.engine.context import LeaseLost
from kizami.engine.cursor import Cursor
from kizami.slack import Deliveries
from tests.simulation.mirror_world import ALERTS, APP, World, mirror_world


@dataclass
class Turn:
    id: int
    service: str


TURNS = [Turn(number, f"s{number}") for number in range(1, 6)]


def turns(after: int | None) -> list[Turn]:
    return [turn for turn in TURNS if turn.id > (after or 0)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


async def items(world: World) -> list[str]:
    return [found.item for found in reversed(await world.store.deliveries.list(APP, ALERTS, None, 50))]


async def test_every_row_is_seen_once_and_its_deliveries_land_with_the_move(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)
    seen = []
    async for turn in Cursor("turns").rows(turns):
        seen.append(turn.id)
        await notices.add(turn.service, turn.service)
        assert await world.store.deliveries.get(APP, ALERTS, turn.service) is None
    assert seen == [1, 2, 3, 4, 5]
    assert await items(world) == ["s1", "s2", "s3", "s4", "s5"]
    assert [turn async for turn in Cursor("turns").rows(turns)] == []


async def test_a_break_commits_nothing_of_its_row_and_what_is_added_afterwards_lands_at_once(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)
    async for turn in Cursor("turns").rows(turns):
        await notices.add(turn.service, turn.service)
        if turn.id == 2:
            break
    assert await items(world) == ["s1"]
    await notices.add("after", "after")
    assert await items(world) == ["s1", "after"]
    assert [turn.id async for turn in Cursor("turns").rows(turns)] == [2, 3, 4, 5]


async def test_an_exception_commits_nothing_of_its_row(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)

    async def fail_at_the_third() -> None:
        async for turn in Cursor("turns").rows(turns):
            await notices.add(turn.service, turn.service)
            _ = 1 / (turn.id - 3)

    with pytest.raises(ZeroDivisionError):
        await fail_at_the_third()
    assert await items(world) == ["s1", "s2"]
    assert await world.store.cursors.position(APP, "turns") == "2"


async def test_a_lost_lease_moves_nothing(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)
    world.enter_job(lease=await world.take_lease("run-1"))

    async def lose_it_at_the_second() -> None:
        async for turn in Cursor("turns").rows(turns):
            await notices.add(turn.service, turn.service)
            if turn.id == 2:
                world.clock.move(600_001)
                await world.take_lease("run-2")

    with pytest.raises(LeaseLost):
        await lose_it_at_the_second()
    assert await items(world) == ["s1"]
    assert await world.store.cursors.position(APP, "turns") == "1"


async def test_of_two_workers_without_a_lease_one_keeps_the_row_and_the_other_nothing(world: World) -> None:
    """The notices that the loser added for the row go with its move; the winner's stay."""
    notices = Deliveries(world.slack, channel=ALERTS)

    async def overtaken() -> None:
        async for turn in Cursor("turns").rows(turns):
            await notices.add(f"slow-{turn.service}", turn.service)
            if turn.id == 2:
                async for other in Cursor("turns").rows(turns):
                    await notices.add(f"fast-{other.service}", other.service)

    with pytest.raises(CursorMovedError) as lost:
        await overtaken()
    assert lost.value.facts == {"cursor": "turns", "read": "1", "found": "5"}
    assert await items(world) == ["slow-s1", "fast-s2", "fast-s3", "fast-s4", "fast-s5"]
    assert await world.store.cursors.position(APP, "turns") == "5"


async def test_what_is_added_in_nested_loops_goes_with_the_innermost(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)

    async def fail_after_the_inner_loop() -> None:
        async for outer in Cursor("outer").rows(turns):
            await notices.add(f"before-{outer.id}", "before")
            async for inner in Cursor("inner").rows(turns):
                await notices.add(f"inner-{inner.id}", "inner")
                if inner.id == 2:
                    break
            await notices.add(f"after-{outer.id}", "after")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_after_the_inner_loop()
    assert await items(world) == ["inner-1"]
    assert await world.store.cursors.position(APP, "outer") is None


async def test_rows_that_a_variable_holds_keep_nothing_back_after_a_break(world: World) -> None:
    notices = Deliveries(world.slack, channel=ALERTS)
    rows = Cursor("turns").rows(turns)
    async for turn in rows:
        await notices.add(turn.service, turn.service)
        break
    await notices.add("after", "after")
    assert await items(world) == ["after"]
    assert [turn.id async for turn in rows] == [1, 2, 3, 4, 5]


async def test_async_queries_and_own_positions_work(world: World) -> None:
    async def query(after: list[int] | None) -> list[tuple[int, int]]:
        return [pair for pair in [(1, 1), (1, 2), (2, 1)] if list(pair) > (after or [])]

    pairs = [pair async for pair in Cursor("pairs").rows(query, position=list)]
    assert pairs == [(1, 1), (1, 2), (2, 1)]
    assert await world.store.cursors.position(APP, "pairs") == "[2,1]"


async def test_rows_without_a_position_are_refused_with_a_remedy(world: World) -> None:
    with pytest.raises(InvalidInputError, match="position="):
        await anext(aiter(Cursor("numbers").rows(lambda _: [object()])))
    assert await items(world) == []
