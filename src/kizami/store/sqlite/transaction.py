"""A transaction on SQLite: named statements in SQLite's dialect on the writer's or reader's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.text import require_storable
from kizami.store.statements import Dialect

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from kizami.store.statements import Statement

DIALECT: Final = Dialect("kizami.store.sqlite")


class SqliteTransaction:
    """The transaction that the connection is in."""

    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def execute(self, statement: Statement, facts: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a named statement. Raises InvalidInputError and sqlite3.Error."""
        require_storable(facts)
        return self.connection.execute(DIALECT[statement], facts)
