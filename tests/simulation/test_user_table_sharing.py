"""Several workers, installations and programs on one table of the user's, and a database that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from kizami.engine.context import LeaseLost
from kizami.runtime import SystemEntropy
from kizami.sandbox.faults import Fault
from kizami.slack import UserTableError
from kizami.slack.row_tokens import RowToken
from kizami.slack.user_table_rows import UserRows
from kizami.store.protocol import Delivery, LeaseFence
from tests.conformance.mirror_store import mirror_store
from tests.simulation.mirror_world import APP, World, mirror_world
from tests.simulation.user_tables import CLAIMS, PLACE, Orders, orders_on

POST, HISTORY = "chat.postMessage", "conversations.history"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def orders(request: pytest.FixtureRequest, tmp_path: Path) -> Orders:
    return orders_on(request, tmp_path)


async def stored(world: World, item: object) -> Delivery:
    (found,) = await world.store.deliveries.known(APP, PLACE, [str(item)])
    return found


async def test_workers_of_one_installation_share_a_table_without_claim_columns(world: World, orders: Orders) -> None:
    """Their claims stand in Kizami's database, also without a lease."""
    orders.add(*range(6))

    async def work(worker: str) -> int:
        world.enter_job(worker)
        return (await orders.queue(world).deliver()).delivered

    assert sum(await asyncio.gather(*(asyncio.create_task(work(f"w{number}")) for number in range(4)))) == 6
    assert sorted(map(str, world.posted())) == [f"order {number}" for number in range(6)]


async def test_installations_that_share_nothing_else_share_a_table_by_its_claims(
    tmp_path: Path, orders: Orders
) -> None:
    orders.add(*range(6))
    async with AsyncExitStack() as stack:
        folders = [tmp_path / name for name in ("a", "b", "c")]
        for folder in folders:
            folder.mkdir()
        worlds = [await stack.enter_async_context(mirror_world(folder)) for folder in folders]

        async def work(world: World) -> int:
            world.runtime.entropy = SystemEntropy()  # tokens that differ between the installations
            world.enter_job()
            return (await orders.queue(world, **CLAIMS).deliver()).delivered

        assert sum(await asyncio.gather(*(asyncio.create_task(work(world)) for world in worlds))) == 6
        posted = [str(text) for world in worlds for text in world.posted()]
    assert sorted(posted) == [f"order {number}" for number in range(6)]
    assert set(orders.column("claim_token")) == {None}


async def test_a_claim_of_somebody_else_holds_until_it_expires_by_the_databases_own_clock(
    world: World, orders: Orders
) -> None:
    """B095: the clock of the machine that asks is a year ahead and doesn't matter."""
    orders.add(1)
    rows = UserRows(create_engine(orders.url, poolclass=NullPool), orders.queue(world, **CLAIMS).names)
    await rows.look()
    assert await rows.claim((1,), RowToken("theirs00", "f" * 32), 300_000)
    world.clock.move(365 * 86_400_000)
    queue = orders.queue(world, due=None, **CLAIMS)
    assert (await queue.deliver()).delivered == 0
    orders.run("UPDATE orders SET claim_expires = claim_expires - 299000")
    assert (await queue.deliver()).delivered == 0
    orders.run("UPDATE orders SET claim_expires = claim_expires - 2000")
    assert (await queue.deliver()).delivered == 1


async def test_a_marker_of_somebody_else_is_a_possible_duplicate_and_stays(
    world: World, orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    orders.add(1)

    async def intrude(phase: str, _item: str) -> None:
        if phase == "answered":
            orders.run("UPDATE orders SET slack_ts = '1.1'")

    world.slack.on_phase = intrude
    queue = orders.queue(world)
    report = await queue.deliver()
    assert (report.possible_duplicates, report.delivered) == (1, 0)
    assert f"{APP}/{PLACE}/1: possible duplicate" in caplog.text
    assert orders.column("slack_ts") == ["1.1"]
    world.slack.on_phase = None
    assert (await queue.deliver()).delivered == 0
    found = await stored(world, 1)
    assert (found.possible_duplicates, found.ts, found.in_doubt_since) == (1, "1.1", None)


async def test_an_acknowledgement_must_carry_the_token_of_the_claim(world: World, orders: Orders) -> None:
    """A claim that expired in mid-post and went to another worker can't be stamped from under it."""
    orders.add(1)

    async def take_over(phase: str, _item: str) -> None:
        if phase == "answered":
            orders.run("UPDATE orders SET claim_token = 'theirs'")

    world.slack.on_phase = take_over
    report = await orders.queue(world, **CLAIMS).deliver()
    assert (report.possible_duplicates, report.delivered) == (1, 0)
    assert orders.column("slack_ts") == [None]
    assert orders.column("claim_token") == ["theirs"]


async def test_a_row_that_was_marked_since_the_queue_was_read_is_not_posted(world: World, orders: Orders) -> None:
    orders.add(1, 2, 3)

    async def meanwhile(phase: str, item: str) -> None:
        if (phase, item) == ("between_items", "2"):
            orders.run("UPDATE orders SET slack_ts = '1.1' WHERE id = 2")
            orders.run("DELETE FROM orders WHERE id = 3")

    world.slack.on_phase = meanwhile
    report = await orders.queue(world).deliver()
    assert (report.delivered, report.taken) == (1, 2)
    assert world.posted() == ["order 1"]
    assert (await stored(world, 2)).ts == "1.1"


async def test_a_row_that_was_marked_during_its_look_up_is_not_posted(world: World, orders: Orders) -> None:
    orders.add(1)
    queue = orders.queue(world)
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    await queue.deliver()
    world.clock.move(60_000)
    real = world.slack.call

    async def call(method: str, *given: object, **named: object) -> object:
        orders.run("UPDATE orders SET slack_ts = '1.1'")
        return await real(method, *given, **named)  # type: ignore[arg-type]  # passed on as it came

    world.slack.call = call  # type: ignore[method-assign, assignment]  # a look-up that takes its time
    report = await queue.deliver()
    assert (report.taken, report.delivered) == (1, 0)
    assert world.posted() == []


async def test_what_waits_for_a_row_that_is_gone_is_set_aside_and_lives_again_with_it(
    world: World, orders: Orders
) -> None:
    orders.add(1)
    queue = orders.queue(world)
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    await queue.deliver()
    orders.run("DELETE FROM orders")
    world.clock.move(60_000)
    await queue.deliver()
    assert (await stored(world, 1)).note == "its row is gone"
    orders.add(1)
    assert (await queue.deliver()).delivered == 1
    assert world.posted() == ["order 1"]


async def test_a_lease_lost_between_two_rows_stops_before_the_second(world: World, orders: Orders) -> None:
    orders.add(1, 2)
    world.enter_job(lease=await world.take_lease("run-1"))

    async def take_over(phase: str, item: str) -> None:
        if (phase, item) == ("between_items", "2"):
            await world.store.leases.release(APP, LeaseFence("mirror", "run-1"))

    world.slack.on_phase = take_over
    with pytest.raises(LeaseLost):
        await orders.queue(world, **CLAIMS).deliver()
    assert world.posted() == ["order 1"]
    assert orders.column("claim_token") == [None, None]


# --- a database that goes away ---------------------------------------------------------------------------------------


def away(orders: Orders, times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the table be out of reach for the next writes of a marker; return where they are noted."""
    tried: list[str] = []
    real = UserRows.mark

    async def mark(rows: UserRows, key: tuple[object, ...], token: str, ts: str) -> bool:
        tried.append(ts)
        if len(tried) > times:
            return await real(rows, key, token, ts)
        orders.run("ALTER TABLE orders RENAME TO hidden")
        try:
            return await real(rows, key, token, ts)
        finally:
            orders.run("ALTER TABLE hidden RENAME TO orders")

    monkeypatch.setattr(UserRows, "mark", mark)
    return tried


async def test_a_short_absence_of_the_table_does_not_cost_the_marker(
    world: World, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.add(1)
    tried = away(orders, 2, monkeypatch)
    assert (await orders.queue(world).deliver()).delivered == 1
    assert orders.column("slack_ts") == [tried[0]]
    assert world.clock.slept == [0.5, 1.0]


@pytest.mark.parametrize("options", [{}, CLAIMS], ids=["marker", "claims"])
async def test_a_marker_that_could_not_be_written_is_written_by_the_next_deliver_without_a_look_up(
    world: World, orders: Orders, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    orders.add(1, 2)
    queue = orders.queue(world, **options)
    tried = away(orders, 3, monkeypatch)
    with pytest.raises(UserTableError, match=r"Table orders of .* can't be used now"):
        await queue.deliver()
    assert orders.column("slack_ts") == [None, None]
    report = await queue.deliver()
    assert (report.adopted, report.delivered) == (1, 1)
    assert world.posted() == ["order 1", "order 2"]
    assert orders.column("slack_ts")[0] == tried[0]
    assert world.calls(HISTORY) == 0


async def test_another_process_adopts_what_the_first_could_not_mark(
    world: World, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.add(1)
    first, second = orders.queue(world), orders.queue(world)
    away(orders, 3, monkeypatch)
    with pytest.raises(UserTableError):
        await first.deliver()
    assert (await second.deliver()).adopted == 1
    assert (await first.deliver()).delivered == 0
    assert world.posted() == ["order 1"]


async def test_a_database_out_of_reach_stops_neither_the_start_nor_anything_but_its_own_deliver(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Orders(f"postgresql+psycopg://reader:hunter2@/shop?host={tmp_path}").queue(world)
    await queue.check()
    assert "Table orders of postgresql+psycopg://reader:***@/shop" in caplog.text
    with pytest.raises(UserTableError, match="What it owes is still owed"):
        await queue.deliver()
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("lost", [Fault.answer_lost(), Fault.never_accepted()], ids=["accepted", "never accepted"])
async def test_a_row_in_doubt_keeps_its_claim_and_another_database_looks_before_it_posts(
    world: World, orders: Orders, tmp_path: Path, lost: Fault
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    orders.add(1)
    world.sandbox.faults.fail_next(POST, lost)
    assert (await orders.queue(world, **CLAIMS).deliver()).in_doubt == 1
    assert orders.column("claim_token") != [None]
    async with mirror_store(other, world.clock) as second:
        world.store = second
        world.enter_job()
        report = await orders.queue(world, **CLAIMS).deliver()
        assert (report.delivered, report.adopted) == (0, 0)
        orders.run("UPDATE orders SET claim_expires = 0")
        world.clock.move(60_000)
        report = await orders.queue(world, **CLAIMS).deliver()
    assert report.delivered + report.adopted == 1
    assert world.posted() == ["order 1"]
    assert orders.column("claim_token") == [None]


async def test_a_row_is_posted_as_it_is_when_claimed_and_not_when_it_is_due_no_longer(
    world: World, orders: Orders
) -> None:
    orders.add(1, 2, 3)

    async def meanwhile(phase: str, item: str) -> None:
        if (phase, item) == ("between_items", "1"):
            orders.run("UPDATE orders SET name = 'corrected' WHERE id = 2")
            orders.run("UPDATE orders SET due_on = :day WHERE id = 3", day=orders.day(date(2026, 6, 30)))

    world.slack.on_phase = meanwhile
    assert (await orders.queue(world).deliver()).delivered == 2
    assert world.posted() == ["order 1", "corrected"]
