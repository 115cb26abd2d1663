"""Cursors over source rows in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.core.errors import CursorMovedError
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.protocol.deliveries import CursorMove
    from kizami.store.sqlite.database import Database

_SQL = load("cursors")


class SqliteCursorStore:
    """Where each reader of source rows has come to; see `CursorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def position(self, app: str, name: str) -> str | None:
        """Return the stored position, or None before the first move."""

        def look(connection: sqlite3.Connection, _: object) -> str | None:
            return _position(connection, app, name)

        return await self._database.read(look)


def move(connection: sqlite3.Connection, move_: CursorMove, facts: dict[str, Any]) -> None:
    """Move a cursor inside the caller's transaction; `facts` are its app and time. Raises CursorMovedError."""
    places = {"name": move_.name, "read": move_.read, "position": move_.position}
    statement = _SQL["begin"] if move_.read is None else _SQL["move"]
    if connection.execute(statement, facts | places).rowcount == 1:
        return
    found = _position(connection, facts["app"], move_.name)
    raise CursorMovedError(
        f"Cursor {move_.name} stands at {found}, not at {move_.read} where it was read: another worker moved it.",
        remedy="Nothing of this row was kept; read on from the stored position, and give the schedule a lease.",
        cursor=move_.name,
        read=move_.read,
        found=found,
    )


def _position(connection: sqlite3.Connection, app: str, name: str) -> str | None:
    row = connection.execute(_SQL["position"], {"app": app, "name": name}).fetchone()
    return None if row is None else row["position"]
