"""Which database this is, among all that post into the same workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Database

_SQL = load("identity")


class IdentityRoom:
    """The database's own id; see `IdentityStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def database_id(self) -> str:
        """Return 16 hexadecimal digits, drawn when the schema was made; a copy of the database has the same."""
        return await self._database.read(
            lambda transaction, _: str(transaction.execute(_SQL["database_id"], {}).fetchone()["database_id"])
        )
