"""Two databases of one app in one workspace, such as those of staging and production, or a backup that was restored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from kizami.sandbox.faults import Fault
from kizami.slack import BoardOutcome, Deliveries, StatusBoard
from tests.conformance.mirror_store import mirror_store
from tests.simulation.mirror_world import ALERTS, STATUS, World, mirror_world

POST = "chat.postMessage"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


def notices(world: World) -> Deliveries:
    return Deliveries(world.slack, channel=ALERTS, history_lag=timedelta(0))


async def publish(world: World) -> BoardOutcome:
    world.clock.move(1_000)
    world.enter_job()
    board = StatusBoard(world.slack, "services", channel=STATUS, history_lag=timedelta(0))
    return await board.publish(await board.fetch(lambda: [{"service": "web"}]))


async def test_a_notice_in_doubt_is_not_taken_for_the_same_one_of_another_database(
    world: World, tmp_path: Path
) -> None:
    """Otherwise it would be marked as delivered, and nobody would ever read it."""
    other = tmp_path / "other"
    other.mkdir()
    await notices(world).add("order-1", "of production")
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    assert (await notices(world).deliver()).in_doubt == 1
    production = world.store
    async with mirror_store(other, world.clock) as staging:
        world.store = staging
        world.enter_job()
        await notices(world).add("order-1", "of staging")
        assert (await notices(world).deliver()).delivered == 1
        world.store = production
        world.enter_job()
        world.clock.move(60_000)
        report = await notices(world).deliver()
    assert (report.delivered, report.adopted) == (1, 0)
    assert world.posted() == ["of staging", "of production"]


async def test_a_board_in_doubt_does_not_take_over_that_of_another_database(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    assert await publish(world) is BoardOutcome.IN_DOUBT
    production = world.store
    async with mirror_store(other, world.clock) as staging:
        world.store = staging
        assert await publish(world) is BoardOutcome.POSTED
        world.store = production
        world.clock.move(60_000)
        assert await publish(world) is BoardOutcome.POSTED
    assert len(set(world.timestamps(STATUS))) == 2
