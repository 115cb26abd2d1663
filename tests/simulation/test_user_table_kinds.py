"""Keys, names and due columns of every kind that a queue may have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from kizami.sandbox.faults import Fault
from kizami.slack import UserTable
from tests.postgres_server import for_sqlalchemy
from tests.simulation.mirror_world import ALERTS, APP, World, mirror_world
from tests.simulation.user_tables import CLAIMS, Orders

POST = "chat.postMessage"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Orders:
    if request.param == "postgresql":
        return Orders(for_sqlalchemy(request.getfixturevalue("postgres_url")))
    (tmp_path / "shop.db").touch()
    return Orders(f"sqlite:///{tmp_path / 'shop.db'}")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("INTEGER", ["9", "10"]),
        ("VARCHAR(40)", ["'a b'", "'ä/\"x\"'", "'10'"]),
        ("UUID", ["'00000000-0000-0000-0000-00000000000a'", "'00000000-0000-0000-0000-00000000000b'"]),
        ("NUMERIC(20, 0)", ["12345678901234567890", "2"]),
        ("DATE", ["'2026-05-01'", "'2026-05-02'"]),
    ],
)
async def test_a_key_of_any_type_that_text_can_name(
    world: World, database: Orders, key: str, values: list[str]
) -> None:
    if database.url.startswith("sqlite"):
        key, values = key.replace("UUID", "CHAR(36)"), values[:2] if key != "NUMERIC(20, 0)" else ["123", "2"]
    database.run(f"CREATE TABLE orders (id {key} PRIMARY KEY, ts TEXT, claim_token TEXT, claim_expires BIGINT)")
    for value in values:
        database.run(f"INSERT INTO orders (id) VALUES ({value})")  # noqa: S608 - our own values
    queue = UserTable(
        world.slack, database.url, table="orders", marker="ts", channel=ALERTS, columns=["id"], batch=1, **CLAIMS
    )
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    for _ in range(2 * len(values)):
        await queue.deliver()
        world.clock.move(60_000)
    assert len(set(world.posted())) == len(world.posted()) == len(values)
    assert sorted(database.run_scalars("SELECT ts FROM orders")) == sorted(world.timestamps())


async def test_keys_of_several_columns_names_that_are_reserved_or_quoted_and_a_schema(
    world: World, database: Orders
) -> None:
    schema = "main" if database.url.startswith("sqlite") else "sales"
    if schema == "sales":
        database.run("CREATE SCHEMA sales")
    database.run(
        f'CREATE TABLE {schema}."Order" ("group" INTEGER, "the key" VARCHAR(9), "select" TEXT, "When" DATE,'
        ' "100% %s" VARCHAR(40), PRIMARY KEY ("group", "the key"))'
    )
    for group, key in ((1, "a"), (1, "b"), (2, "a")):
        into = f'{schema}."Order" ("group", "the key", "When", "100% %s")'
        database.run(
            f"INSERT INTO {into} VALUES (:g, :k, :day, :text)",  # noqa: S608 - our own names
            g=group,
            k=key,
            day=database.day(),
            text=f"{group}{key}",
        )
    queue = UserTable(
        world.slack,
        database.url,
        table=f"{schema}.Order",
        id=["group", "the key"],
        marker="select",
        due="When",
        channel=ALERTS,
        text=lambda row: str(row["100% %s"]),
        batch=2,
    )
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    for _ in range(3):
        await queue.deliver()
        world.clock.move(60_000)
    assert world.posted() == ["1a", "1b", "2a"]
    known = await world.store.deliveries.list(APP, f"{ALERTS}:{schema}.Order.select", "delivered", 9)
    assert [each.item for each in reversed(known)] == ['["1","a"]', '["1","b"]', '["2","a"]']


@pytest.mark.parametrize(
    ("kind", "due", "not_due"),
    [
        ("DATE", "'2026-05-29'", "'2026-05-30'"),
        ("TIMESTAMP", "'2026-05-29 23:59:59.999'", "'2026-05-30 00:00:00'"),
        ("VARCHAR(40)", "'2026-05-29T23:59'", "'2026-05-30'"),
        ("TIMESTAMP WITH TIME ZONE", "'2026-05-29 14:59:59+00:00'", "'2026-05-29 15:00:00+00:00'"),
    ],
)
async def test_due_until_the_end_of_the_local_day_whatever_the_column(
    world: World, database: Orders, kind: str, due: str, not_due: str
) -> None:
    """The date is that of the tick in its zone: in Tokyo it is the 29th already."""
    if kind == "TIMESTAMP WITH TIME ZONE" and database.url.startswith("sqlite"):
        kind, due, not_due = "DATETIME", "'2026-05-29 23:59'", "'2026-05-30T00:00'"
    database.run(f"CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, due {kind}, ts TEXT)")
    database.run(f"INSERT INTO orders VALUES (1, 'due', {due}, NULL), (2, 'later', {not_due}, NULL)")  # noqa: S608 - ours
    queue = UserTable(
        world.slack,
        database.url,
        table="orders",
        marker="ts",
        due="due",
        channel=ALERTS,
        columns=["name"],
        time_zone="Asia/Tokyo",
    )
    await queue.deliver()
    assert world.posted() == ["name: due"]
    (known,) = await world.store.deliveries.list(APP, f"{ALERTS}:orders.ts", None, 9)
    assert known.due == "2026-05-29"


async def test_due_dates_that_are_none_are_told(
    world: World, database: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, due VARCHAR(20), ts TEXT)")
    database.run("INSERT INTO orders VALUES (1, '28/05/2026', NULL), (2, '2026-05-28', NULL), (3, '9', 'marked')")
    queue = UserTable(world.slack, database.url, table="orders", marker="ts", due="due", channel=ALERTS)
    report = await queue.deliver()
    assert (report.delivered, report.refused) == (1, 1)
    assert "1 rows don't say when they are due" in caplog.text


async def test_an_engine_of_the_users_own_serves_too(world: World, database: Orders) -> None:
    database.create()
    database.add(1, 2)
    engine = create_engine(database.url)
    queue = UserTable(world.slack, engine, table="orders", marker="slack_ts", due="due_on", channel=ALERTS)
    assert (await queue.deliver()).delivered == 2
    engine.dispose()


async def test_an_updatable_view_of_postgresql_serves_too(world: World, postgres_url: str) -> None:
    database = Orders(for_sqlalchemy(postgres_url))
    database.create()
    database.add(1, 2)
    database.run("CREATE VIEW paid AS SELECT * FROM orders WHERE id = 2")
    queue = UserTable(world.slack, database.url, table="paid", marker="slack_ts", channel=ALERTS, columns=["name"])
    assert (await queue.deliver()).delivered == 1
    assert world.posted() == ["name: order 2"]
