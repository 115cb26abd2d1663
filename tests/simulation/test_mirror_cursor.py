from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kizami.core.errors import CursorMovedError, DefinitionError, InvalidInputError
from kizami.core.times import to_datetime
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


async def test_an_item_that_is_owed_already_is_said_to_be_so_in_a_loop_too(world: World) -> None:
    """Also one that was added for the same row, or in the loop around."""
    notices = Deliveries(world.slack, channel=ALERTS)
    await notices.add("s2", "said before")
    said: dict[int, list[bool]] = {}
    async for turn in Cursor("turns").rows(turns):
        said[turn.id] = [await notices.add(turn.service, turn.service), await notices.add(turn.service, "again")]
        async for inner in Cursor(f"inner-{turn.id}").rows(lambda _: TURNS[:1]):
            said[turn.id].append(await notices.add(f"s{turn.id}", f"from {inner.id}"))
    assert said == {turn.id: [turn.id != 2, False, False] for turn in TURNS}
    assert await items(world) == ["s2", "s1", "s3", "s4", "s5"]


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


Event = tuple[int, datetime]


async def test_a_lower_id_that_becomes_visible_late_is_not_skipped(world: World, postgres_url: str) -> None:
    """Of two open transactions the one with the higher id commits first."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as reader,
        psycopg.connect(postgres_url) as slow,
        psycopg.connect(postgres_url) as quick,
    ):
        reader.execute(
            "CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL)"
        )

        def write(writer: psycopg.Connection) -> None:
            writer.execute("INSERT INTO events (at) VALUES (%s)", (to_datetime(world.clock.now),))

        def query(after: int | None) -> list[Event]:
            return reader.execute("SELECT id, at FROM events WHERE id > %s ORDER BY id", (after or 0,)).fetchall()

        async def read() -> list[int]:
            rows = Cursor("events").rows(
                query, lambda event: event[0], behind=timedelta(seconds=60), at=lambda event: event[1]
            )
            return [event[0] async for event in rows]

        write(slow)
        write(quick)
        quick.commit()
        world.clock.move(59_999)
        assert await read() == []
        slow.commit()
        write(quick)
        quick.commit()
        world.clock.move(1)
        assert await read() == [1, 2]
        world.clock.move(60_000)
        assert await read() == [3]


async def test_a_loop_that_has_met_a_young_row_gives_no_further_one(world: World) -> None:
    now = to_datetime(world.clock.now)
    ages = [now - timedelta(minutes=9), now, now - timedelta(minutes=9)]
    rows = Cursor("ages").rows(
        lambda _: list(enumerate(ages)), lambda row: row[0], behind=timedelta(minutes=1), at=lambda row: row[1]
    )
    loop = aiter(rows)
    assert (await anext(loop))[0] == 0
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(loop)


@pytest.mark.parametrize(
    "options", [{"behind": timedelta(minutes=1)}, {"at": lambda _: datetime(2026, 1, 1, tzinfo=UTC)}]
)
def test_staying_behind_needs_a_length_and_a_time(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="both behind and at"):
        Cursor("turns").rows(turns, **options)


@pytest.mark.usefixtures("world")
async def test_a_time_without_a_zone_is_refused() -> None:
    rows = Cursor("turns").rows(turns, behind=timedelta(minutes=1), at=lambda _: datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake
    with pytest.raises(InvalidInputError, match="no time zone"):
        assert [turn async for turn in rows] == []
