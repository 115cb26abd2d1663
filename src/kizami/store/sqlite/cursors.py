"""Cursors over source rows in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.protocol.deliveries import CursorRow
    from kizami.store.sqlite.database import Database

_SQL = load("cursors")


class SqliteCursorStore:
    """Where each reader of source rows has come to; see `CursorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def position(self, app: str, name: str) -> str | None:
        """Return the stored position, or None before the first move."""

        def look(connection: sqlite3.Connection, _: object) -> str | None:
            row = connection.execute(_SQL["position"], {"app": app, "name": name}).fetchone()
            return None if row is None else row["position"]

        return await self._database.read(look)


def move(connection: sqlite3.Connection, cursor: CursorRow, facts: dict[str, Any]) -> None:
    """Move a cursor inside the caller's transaction; `facts` are its app, time and fence."""
    connection.execute(_SQL["move"], {**facts, "name": cursor.name, "position": cursor.position})
