"""Cursors over source rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol.deliveries import CursorRow
    from kizami.store.transaction import Database, Transaction

_SQL = load("cursors")


class CursorRoom:
    """Where each reader of source rows has come to; see `CursorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def position(self, app: str, name: str) -> str | None:
        """Return the stored position, or None before the first move."""

        def look(transaction: Transaction, _: object) -> str | None:
            row = transaction.execute(_SQL["position"], {"app": app, "name": name}).fetchone()
            return None if row is None else row["position"]

        return await self._database.read(look)


def move(transaction: Transaction, cursor: CursorRow, facts: dict[str, Any]) -> None:
    """Move a cursor inside the caller's transaction; `facts` are its app, time and fence."""
    transaction.execute(_SQL["move"], {**facts, "name": cursor.name, "position": cursor.position})
