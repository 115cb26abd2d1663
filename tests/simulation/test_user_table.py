"""A user's own table as the queue: on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.sandbox.faults import Fault
from kizami.slack import UserTable, message
from kizami.slack.user_table_rows import UserRows
from kizami.store.protocol import Delivery
from tests.simulation.mirror_world import APP, World, mirror_world
from tests.simulation.user_tables import CLAIMS, PLACE, TODAY, Orders, orders_on

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


async def deliver(world: World, queue: UserTable) -> Any:
    world.clock.move(60_000)
    return await queue.deliver()


async def test_rows_without_a_marker_are_posted_once_by_due_date_then_id(world: World, orders: Orders) -> None:
    orders.add(10, 9, 100)
    orders.add(200, due=TODAY - timedelta(days=1))
    queue = orders.queue(world, batch=2)
    assert (await queue.deliver()).delivered == 2
    assert world.posted() == ["order 200", "order 9"]
    assert (await deliver(world, queue)).delivered == 2
    assert (await deliver(world, queue)).delivered == 0
    assert world.posted() == ["order 200", "order 9", "order 10", "order 100"]
    assert sorted(orders.column("slack_ts")) == world.timestamps()
    assert (await stored(world, 9)).ts == orders.column("slack_ts")[0]
    assert await world.store.deliveries.counts(APP) == {
        PLACE: {"owed": 0, "delivered": 4, "in_doubt": 0, "set_aside": 0}
    }


async def test_only_what_is_due_goes_out_and_what_is_due_for_too_long_is_told_once(
    world: World, orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    """B088: nothing is written about old rows unless a column for it is named."""
    orders.add(1, due=TODAY + timedelta(days=1))
    orders.add(2, due=None)
    orders.add(3, due=TODAY - timedelta(days=7))
    orders.add(4, 5, due=TODAY - timedelta(days=8))
    queue = orders.queue(world)
    report = await queue.deliver()
    assert (report.delivered, report.set_aside) == (1, 2)
    assert "2 deliveries are due for more than 7 days" in caplog.text
    orders.add(6, due=TODAY - timedelta(days=9))
    assert (await deliver(world, queue)).set_aside == 1
    assert (await deliver(world, queue)).set_aside == 0
    assert world.posted() == ["order 3"]
    assert orders.column("problem") == [None] * 6


async def test_with_a_column_for_it_the_table_says_what_was_set_aside(world: World, orders: Orders) -> None:
    orders.add(1, due=TODAY - timedelta(days=8))
    orders.add(2)
    queue = orders.queue(world, set_aside="problem", **CLAIMS)
    world.sandbox.faults.fail_next(POST, Fault.refused("msg_too_long"))
    report = await queue.deliver()
    assert (report.set_aside, report.refused) == (1, 1)
    assert orders.column("problem")[0] == "due for more than 7 days"
    assert orders.column("problem")[1] == "Slack refused chat.postMessage: msg_too_long."[:40]
    assert (await deliver(world, queue)).set_aside == 0
    orders.run("UPDATE orders SET problem = NULL WHERE id = 2")
    assert (await deliver(world, queue)).delivered == 1
    assert orders.column("claim_token") == [None, None]


async def test_refused_content_waits_for_a_change_and_holds_nothing_up(world: World, orders: Orders) -> None:
    orders.add(1, 2)
    queue = orders.queue(world, batch=2)
    world.sandbox.faults.fail_next(POST, Fault.refused("msg_too_long"))
    report = await queue.deliver()
    assert (report.refused, report.delivered) == (1, 1)
    assert (await deliver(world, queue)).refused == 0
    assert (await stored(world, 1)).set_aside_at is not None
    orders.run("UPDATE orders SET name = 'shorter' WHERE id = 1")
    assert (await deliver(world, queue)).delivered == 1
    assert world.posted() == ["order 2", "shorter"]


async def test_a_row_that_cannot_be_rendered_is_told_and_the_others_go_on(
    world: World, orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    orders.add(1, 2, 3)

    def text(row: Any) -> str:
        if row["id"] != 3:
            raise KeyError("price")
        return str(row["name"])

    report = await orders.queue(world, text=text, batch=1).deliver()
    assert (report.refused, report.delivered) == (2, 1)
    assert f"{PLACE}/1 can't be rendered: 'price'" in caplog.text
    assert world.posted() == ["order 3"]


@pytest.mark.parametrize(
    ("options", "posted"),
    [
        ({"text": lambda _: "<!here> & *b*"}, "&lt;!here&gt; &amp; *b*"),
        ({"text": lambda _: "*b* <https://a.example|a>", "markup": True}, "*b* <https://a.example|a>"),
        ({"text": lambda _: message("as *it* is")}, "as *it* is"),
        ({"text": None, "columns": ["name", "id"]}, "name: order 1\nid: 1"),
        (
            {"text": None},
            f"id: 1\nname: order 1\ndue_on: {TODAY}\nclaim_token: None\nclaim_expires: None\nproblem: None",
        ),
    ],
    ids=["text", "markup", "message", "columns", "all-columns"],
)
async def test_a_message_is_made_of_a_row(world: World, orders: Orders, options: dict[str, Any], posted: str) -> None:
    orders.add(1)
    assert (await orders.queue(world, **options).deliver()).delivered == 1
    assert world.posted() == [posted]


async def test_where_narrows_the_queue(world: World, orders: Orders) -> None:
    orders.add(1, 2)
    await orders.queue(world, where="name LIKE '%2' AND name <> ':x'", **CLAIMS).deliver()
    assert world.posted() == ["order 2"]


async def test_without_a_due_column_every_unmarked_row_is_due(world: World, orders: Orders) -> None:
    orders.add(2, due=None)
    orders.add(1, due=TODAY + timedelta(days=400))
    assert (await orders.queue(world, due=None).deliver()).delivered == 2
    assert world.posted() == ["order 1", "order 2"]


async def test_clearing_a_marker_owes_the_row_anew(world: World, orders: Orders) -> None:
    orders.add(1)
    queue = orders.queue(world)
    await queue.deliver()
    orders.run("UPDATE orders SET slack_ts = NULL")
    assert (await deliver(world, queue)).delivered == 1
    assert world.posted() == ["order 1", "order 1"]
    assert orders.column("slack_ts") == world.timestamps()[1:]


# --- lost answers and crashes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, CLAIMS], ids=["marker", "claims"])
async def test_a_lost_answer_leaves_exactly_one_message(world: World, orders: Orders, options: dict[str, str]) -> None:
    """B076."""
    orders.add(1)
    queue = orders.queue(world, **options)
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    assert (await queue.deliver()).in_doubt == 1
    assert orders.column("slack_ts") == [None]
    report = await deliver(world, queue)
    assert (report.adopted, report.delivered) == (1, 0)
    assert world.posted() == ["order 1"]
    assert orders.column("slack_ts") == world.timestamps()


async def test_an_incomplete_look_up_waits_and_an_unreadable_history_posts_again(world: World, orders: Orders) -> None:
    """B086."""
    orders.add(1)
    queue = orders.queue(world)
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await queue.deliver()
    world.sandbox.faults.fail_next(HISTORY, Fault.rate_limited(60))
    assert (await deliver(world, queue)).waiting == 1
    assert world.posted() == ["order 1"]
    world.clock.move(60_000)
    world.sandbox.faults.fail_next(HISTORY, Fault.refused("missing_scope"))
    assert (await deliver(world, queue)).delivered == 1
    assert world.posted() == ["order 1", "order 1"]


def dies_after(monkeypatch: pytest.MonkeyPatch, world: World, owner: Any, name: str, *, before: bool) -> None:
    """Let the process go right after (or before) the next call of a step; what it would do then never happens."""
    real = getattr(owner, name)

    async def step(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        answer = None if before else await real(*given, **named)
        await world.slack.announce("dies", "")
        return answer

    monkeypatch.setattr(owner, name, step)


CRASHES = [
    ("deliveries", "claim_owed_elsewhere", False, 0),
    ("rows", "claim", False, 0),
    ("deliveries", "intend", False, 0),
    ("slack", "answered", False, 1),
    ("rows", "mark", False, 1),
    ("deliveries", "mark", True, 1),
    ("deliveries", "mark", False, 1),
]


@pytest.mark.parametrize("options", [{}, CLAIMS], ids=["marker", "claims"])
@pytest.mark.parametrize(("room", "step", "before", "posts"), CRASHES, ids=str)
async def test_a_crash_at_any_step_between_the_databases_loses_and_doubles_nothing(
    world: World,
    orders: Orders,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    room: str,
    step: str,
    before: bool,
    posts: int,
) -> None:
    """B076: the next deliver finds what the dead process left in either database."""
    orders.add(1, 2)
    queue = orders.queue(world, **options)
    if room == "slack":
        await world.die_at(step, queue.deliver)
    else:
        owner = {"deliveries": world.store.deliveries, "rows": UserRows}[room]
        dies_after(monkeypatch, world, owner, step, before=before)
        await world.die_at("dies", queue.deliver)
    assert len(world.posted()) == posts
    orders.run("UPDATE orders SET claim_expires = claim_expires - 300001 WHERE claim_token IS NOT NULL")
    after_restart = orders.queue(world, **options)
    await deliver(world, after_restart)
    assert sorted(map(str, world.posted())) == ["order 1", "order 2"]
    assert sorted(orders.column("slack_ts")) == sorted(world.timestamps())
    assert await world.store.deliveries.counts(APP) == {
        PLACE: {"owed": 0, "delivered": 2, "in_doubt": 0, "set_aside": 0}
    }
    assert set(orders.column("claim_token")) == {None}
