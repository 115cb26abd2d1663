"""A transaction on SQLite: named statements in SQLite's dialect on the writer's or reader's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.storable import require_storable
from kizami.store.statements import Dialect

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from kizami.store.statements import Statement
    from kizami.store.transaction import Moment

DIALECT: Final = Dialect("kizami.store.sqlite")


class SqliteTransaction:
    """The transaction that the connection is in."""

    __slots__ = ("_time", "connection")

    def __init__(self, connection: sqlite3.Connection, moment: Moment) -> None:
        self.connection = connection
        self._time = {"now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id}

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> sqlite3.Cursor:
        """Run a named statement. Raises InvalidInputError and sqlite3.Error."""
        require_storable(facts)
        return self.connection.execute(DIALECT.text(statement, pieces), {**self._time, **facts})

    def tuples(self, statement: Statement, facts: Mapping[str, Any], /) -> sqlite3.Cursor:
        """Run a named statement whose rows are read by place. Raises sqlite3.Error."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        return cursor.execute(DIALECT[statement], {**self._time, **facts})

    def execute_late(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Run a statement for each row, at once: there is no way to save. Raises sqlite3.Error."""
        self.connection.executemany(DIALECT[statement], rows)

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a statement for each row. Raises sqlite3.Error."""
        return self.connection.executemany(DIALECT[statement], rows).rowcount
