"""A user's table `orders`, on SQLite or on PostgreSQL, as the user's own programs see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from kizami.slack import UserTable
from tests.postgres_server import for_sqlalchemy
from tests.simulation.mirror_world import ALERTS, World

TODAY = date(2026, 5, 28)
PLACE = f"{ALERTS}:orders.slack_ts"
CLAIMS: dict[str, Any] = {"claim_token": "claim_token", "claim_expires": "claim_expires"}
COLUMNS = """
    id {key} PRIMARY KEY, name TEXT NOT NULL, due_on DATE, slack_ts TEXT,
    claim_token VARCHAR(64), claim_expires BIGINT, problem VARCHAR(40)
"""


@dataclass
class Orders:
    """The table, by its URL."""

    url: str

    def __post_init__(self) -> None:
        self._engine = create_engine(self.url, poolclass=NullPool)

    def run(self, statement: str, **values: object) -> None:
        with self._engine.begin() as connection:
            connection.execute(text(statement), values)

    def run_scalars(self, query: str) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(text(query)).scalars())

    def day(self, day: date = TODAY) -> object:
        """Return a date as this database's driver takes it."""
        return day.isoformat() if self.url.startswith("sqlite") else day

    def create(self, key: str = "INTEGER") -> None:
        self.run(f"CREATE TABLE orders ({COLUMNS.format(key=key)})")

    def add(self, *ids: object, due: date | None = TODAY) -> None:
        for id_ in ids:
            self.run(
                "INSERT INTO orders (id, name, due_on) VALUES (:id, :name, :due)",
                id=id_,
                name=f"order {id_}",
                due=self.day(due) if due else None,
            )

    def rows(self) -> list[Mapping[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(text("SELECT * FROM orders ORDER BY id")).mappings()]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows()]

    def queue(self, world: World, **options: Any) -> UserTable:
        given: dict[str, Any] = {"due": "due_on", "text": lambda row: row["name"]} | options
        return UserTable(world.slack, self.url, table="orders", marker="slack_ts", channel=ALERTS, **given)


def orders_on(request: pytest.FixtureRequest, folder: Path) -> Orders:
    """Make the table on the database that a fixture's parameter names."""
    if request.param == "sqlite":
        (folder / "shop.db").touch()
        made = Orders(f"sqlite:///{folder / 'shop.db'}")
    else:
        made = Orders(for_sqlalchemy(request.getfixturevalue("postgres_url")))
    made.create()
    return made
