"""Cursors over source rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.core.errors import CursorMovedError
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol.deliveries import CursorMove
    from kizami.store.transaction import Database, Transaction

_SQL = load("cursors")


class CursorRoom:
    """Where each reader of source rows has come to; see `CursorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def position(self, app: str, name: str) -> str | None:
        """Return the stored position, or None before the first move."""

        def look(transaction: Transaction, _: object) -> str | None:
            return _position(transaction, app, name)

        return await self._database.read(look)


def move(transaction: Transaction, move_: CursorMove, facts: dict[str, Any]) -> None:
    """Move a cursor inside the caller's transaction; `facts` are its app and time. Raises CursorMovedError."""
    places = {"name": move_.name, "read": move_.read, "position": move_.position}
    statement = _SQL["begin"] if move_.read is None else _SQL["move"]
    if transaction.execute(statement, facts | places).rowcount == 1:
        return
    found = _position(transaction, facts["app"], move_.name)
    raise CursorMovedError(
        f"Cursor {move_.name} stands at {found}, not at {move_.read} where it was read: another worker moved it.",
        remedy="Nothing of this row was kept; read on from the stored position, and give the schedule a lease.",
        cursor=move_.name,
        read=move_.read,
        found=found,
    )


def _position(transaction: Transaction, app: str, name: str) -> str | None:
    row = transaction.execute(_SQL["position"], {"app": app, "name": name}).fetchone()
    return None if row is None else row["position"]
