"""What a user's table must look like, said at the start in a sentence with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from kizami import Kizami
from kizami.core.errors import ConfigurationError, DefinitionError
from kizami.slack import Slack, UserTable
from tests.postgres_server import for_sqlalchemy

SLACK = Slack(api_url="http://127.0.0.1:9/api/")
GOOD: dict[str, Any] = {"table": "orders", "marker": "ts", "channel": "C0ALERTS"}


def make(url: str, *statements: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    make(url, "CREATE TABLE other (id INTEGER)")
    return url


@pytest.fixture
def postgres(postgres_url: str) -> str:
    return for_sqlalchemy(postgres_url)


async def refusal(url: str, statements: str, /, **options: Any) -> str:
    """Return what is said of a table at the start."""
    make(url, *statements.split(";"))
    with pytest.raises(DefinitionError) as caught:
        await UserTable(SLACK, url, **GOOD | options).check()
    return str(caught.value)


EVERYWHERE = [
    (
        "CREATE TABLE order_lines (id INTEGER PRIMARY KEY, ts TEXT)",
        {"table": "order_line"},
        "Table order_line: it isn't there. Did you mean order_lines?",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, slack_ts TEXT)",
        {"marker": "slack_t"},
        "Table orders: it has no column slack_t (marker). Did you mean slack_ts?",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT)",
        {"due": "when", "columns": ["price"]},
        "it has no column when (due). There are: id, ts.",
    ),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT)", {"columns": ["price"]}, "no column price (columns)"),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts NUMERIC(17, 6))",
        {},
        "column ts (marker) is of type NUMERIC(17, 6), which can't hold it as it is.",
    ),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts REAL)", {}, "A ts is text; a number would lose digits of it."),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts BIGINT)", {}, "Use a column of type TEXT or VARCHAR(17) for it."),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TIMESTAMP)", {}, "(marker) is of type TIMESTAMP"),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts VARCHAR(16))", {}, "shorter than the 17 characters it needs"),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT NOT NULL)", {}, "(marker) is NOT NULL"),
    ("CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT DEFAULT 'new')", {}, "has the default 'new'"),
    (
        "CREATE TABLE orders (id INTEGER, ts TEXT)",
        {},
        "several rows may have the same id (id). Make it the primary key, or unique.",
    ),
    (
        "CREATE TABLE orders (id INTEGER, shop INTEGER, ts TEXT, PRIMARY KEY (shop, id))",
        {},
        "several rows may have the same id (id). Name its primary key: shop, id.",
    ),
    (
        "CREATE TABLE orders (id INTEGER, ts TEXT); CREATE UNIQUE INDEX u ON orders (id) WHERE id > 5",
        {},
        "several rows may have the same id",
    ),
    ("CREATE TABLE orders (id INTEGER UNIQUE, ts TEXT)", {}, "column id (id) may be NULL. Make it NOT NULL"),
    ("CREATE TABLE orders (id DOUBLE PRECISION PRIMARY KEY, ts TEXT)", {}, "whose text doesn't name a row for good"),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, due INTEGER)",
        {"due": "due"},
        "column due (due) is of type INTEGER, which names no date.",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, t VARCHAR(20), e BIGINT)",
        {"claim_token": "t", "claim_expires": "e"},
        "column t (claim_token) is of type VARCHAR(20), which is shorter than the 32 characters",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, t TEXT, e TEXT)",
        {"claim_token": "t", "claim_expires": "e"},
        "column e (claim_expires) is of type TEXT; it has to hold epoch milliseconds.",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, t TEXT, e BIGINT NOT NULL)",
        {"claim_token": "t", "claim_expires": "e"},
        "column e (claim_expires) is NOT NULL",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, why INTEGER)",
        {"set_aside": "why"},
        "column why (set_aside) is of type INTEGER",
    ),
    (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT)",
        {"where": "state = 'paid'"},
        "the database refuses what has to be written or read",
    ),
]


@pytest.mark.parametrize(("table", "options", "said"), EVERYWHERE)
async def test_a_table_that_cannot_be_a_queue_is_refused_on_sqlite(
    sqlite: str, table: str, options: dict[str, Any], said: str
) -> None:
    assert said in await refusal(sqlite, table, **options)


@pytest.mark.parametrize(("table", "options", "said"), EVERYWHERE)
async def test_a_table_that_cannot_be_a_queue_is_refused_on_postgresql(
    postgres: str, table: str, options: dict[str, Any], said: str
) -> None:
    assert said in await refusal(postgres, table, **options)


async def test_a_view_of_sqlite_is_refused(sqlite: str) -> None:
    view = "CREATE TABLE o (id INTEGER PRIMARY KEY, ts TEXT); CREATE VIEW orders AS SELECT * FROM o"
    assert "it is a view" in await refusal(sqlite, view)


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (
            "CREATE TABLE o (id INTEGER PRIMARY KEY, ts TEXT); CREATE VIEW orders AS SELECT DISTINCT id, ts FROM o",
            {},
            'the database refuses what has to be written or read: cannot update view "orders"',
        ),
        (
            "CREATE TABLE o (id INTEGER PRIMARY KEY, ts TEXT); CREATE MATERIALIZED VIEW orders AS SELECT * FROM o",
            {},
            "several rows may have the same id",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT GENERATED ALWAYS AS ('1') STORED)",
            {},
            'column "ts" can only be updated to DEFAULT',
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts CHAR(20))",
            {},
            "(marker) is of type CHAR(20)",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT, t TEXT, e INTEGER)",
            {"claim_token": "t", "claim_expires": "e"},
            "Use a column of type BIGINT for it.",
        ),
        ("CREATE TABLE orders (id BYTEA PRIMARY KEY, ts TEXT)", {}, "column id (id) is of type BYTEA"),
        ("CREATE TYPE s AS ENUM ('a'); CREATE TABLE orders (id INTEGER PRIMARY KEY, ts s)", {}, "which can't hold it"),
    ],
)
async def test_what_only_postgresql_has_is_refused_too(
    postgres: str, table: str, options: dict[str, Any], said: str
) -> None:
    assert said in await refusal(postgres, table, **options)


async def test_a_missing_right_is_said_at_the_start(postgres: str) -> None:
    make(
        postgres,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, ts TEXT)",
        "DROP ROLE IF EXISTS kizami_test_reader",
        "CREATE ROLE kizami_test_reader LOGIN",
        "GRANT SELECT ON orders TO kizami_test_reader",
    )
    reader = postgres.replace("postgres:@", "kizami_test_reader:@")
    with pytest.raises(DefinitionError, match="permission denied for table orders") as caught:
        await UserTable(SLACK, reader, **GOOD).check()
    assert "the right to select its columns and to update the marker" in str(caught.value)
    make(postgres, "DROP OWNED BY kizami_test_reader", "DROP ROLE kizami_test_reader")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channel": "#alerts"}, "is not a channel id"),
        ({"table": ""}, "names no table"),
        ({"id": ()}, "id names no column"),
        ({"marker": ""}, "marker='' names no column"),
        ({"marker": "id"}, "column id is named both as id and as marker"),
        ({"claim_token": "t"}, "Name claim_expires too"),
        ({"claim_expires": "t"}, "Name claim_token too"),
    ],
)
def test_wrong_names_are_refused_where_they_are_written(sqlite: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        UserTable(SLACK, sqlite, **GOOD | options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("shop.db", "its database is not a SQLAlchemy URL"),
        ("sqlite://", "in memory is empty again for each use"),
        ("nosuch://x/y", "SQLAlchemy doesn't know databases of kind nosuch"),
        ("mysql+pymysql://x/y", "there is no module pymysql"),
        ("postgresql+psycopg_async://x/y", "is a driver for asyncio"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_where_it_is_written(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        UserTable(SLACK, url, **GOOD)
    assert said in str(caught.value)


def test_an_async_engine_is_refused(postgres: str) -> None:
    with pytest.raises(DefinitionError, match="AsyncEngine, neither a URL nor a sync Engine"):
        UserTable(SLACK, create_async_engine(postgres), **GOOD)  # type: ignore[arg-type]  # the mistake under test


async def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no SQLite file"):
        await UserTable(SLACK, f"sqlite:///{tmp_path / 'absent.db'}", **GOOD).check()
    assert not (tmp_path / "absent.db").exists()


@pytest.fixture
def app(tmp_path: Path) -> Kizami:
    app = Kizami("shop", database_url=f"sqlite:///{tmp_path / 'kizami.db'}")

    @app.performer
    def nothing() -> None:
        return

    return app


async def test_an_app_does_not_start_with_a_table_that_cannot_be_a_queue(app: Kizami, sqlite: str) -> None:
    app.at_start(UserTable(SLACK, sqlite, **GOOD).check)
    with pytest.raises(DefinitionError, match="it isn't there"):
        async with app.running():
            pass
    async with app.running(worker=False):
        assert await app.schedules.list() == ()
