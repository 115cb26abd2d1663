"""The monitor's own database: a table of checks that grows, and the two questions that the mirror asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, text

T = TypeVar("T")

_TABLE: Final = text(
    "CREATE TABLE IF NOT EXISTS checks (id INTEGER PRIMARY KEY, checked_at_ms INTEGER NOT NULL, service TEXT NOT NULL, "
    "status TEXT NOT NULL, http_status INTEGER, response_ms INTEGER)"
)
_ADD: Final = text(
    "INSERT INTO checks (checked_at_ms, service, status, http_status, response_ms) "
    "VALUES (:checked_at_ms, :service, :status, :http_status, :response_ms)"
)
_LATEST: Final = text(
    "SELECT service, status, http_status, response_ms, "
    "strftime('%Y-%m-%d %H:%M', checked_at_ms / 1000, 'unixepoch') AS checked_utc "
    "FROM checks WHERE id IN (SELECT max(id) FROM checks GROUP BY service) ORDER BY status, service"
)
_TURNS: Final = text(
    "SELECT id, service, checked_at_ms FROM ("
    "SELECT id, service, status, checked_at_ms, "
    "lag(status) OVER (PARTITION BY service ORDER BY id) AS before FROM checks"
    ") WHERE status = 'down' AND before = 'up' AND id > :after ORDER BY id"
)


class Source:
    """The table of checks in a SQLite file of the monitor's."""

    def __init__(self, path: str) -> None:
        self._engine: Engine = create_engine(URL.create("sqlite", database=path))
        with self._engine.begin() as connection:
            connection.execute(text("PRAGMA journal_mode = WAL"))
            connection.execute(_TABLE)

    async def add(self, checks: list[dict[str, str]]) -> None:
        """Add checks as a monitor would."""

        def work(connection: Connection) -> None:
            connection.execute(_ADD, [{**check, "http_status": check["http_status"] or None} for check in checks])

        await self._run(work)

    async def latest(self) -> list[dict[str, Any]]:
        """Return the latest check of every service, what is down first."""
        return await self._rows(_LATEST, {})

    async def turns_down(self, after: int | None) -> list[dict[str, Any]]:
        """Return the checks at which a service turned from up to down, beyond a position."""
        return await self._rows(_TURNS, {"after": 0 if after is None else after})

    async def _rows(self, statement: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
        return await self._run(
            lambda connection: [dict(row) for row in connection.execute(statement, values).mappings()]
        )

    async def _run(self, work: Callable[[Connection], T]) -> T:
        def begin() -> T:
            with self._engine.begin() as connection:
                return work(connection)

        return await asyncio.to_thread(begin)
