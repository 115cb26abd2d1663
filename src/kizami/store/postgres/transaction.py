"""A transaction on PostgreSQL: named statements in PostgreSQL's dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from psycopg.rows import tuple_row

from kizami.core.storable import require_storable
from kizami.store.statements import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import Cursor

    from kizami.store.postgres.connection import Connection, Row
    from kizami.store.statements import Statement
    from kizami.store.transaction import Moment

_PARAMETER: Final = re.compile(r"(?<!:):([a-z]\w*)")


def compiled(text: str) -> str:
    """Return a statement with its parameters written as psycopg wants them; `::` stays a cast."""
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))


DIALECT: Final = Dialect("kizami.store.postgres", compiled)


class PostgresTransaction:
    """The transaction that the connection is in."""

    __slots__ = ("_time", "connection")

    def __init__(self, connection: Connection, moment: Moment) -> None:
        self.connection = connection
        self._time = {"now": moment.now}

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> Cursor[Row]:
        """Run a named statement. Raises InvalidInputError and psycopg.Error."""
        require_storable(facts)
        return self.connection.execute(DIALECT.text(statement, pieces), {**self._time, **facts})

    def tuples(self, statement: Statement, facts: Mapping[str, Any], /) -> Cursor[tuple[Any, ...]]:
        """Run a named statement whose rows are read by place. Raises psycopg.Error."""
        cursor = self.connection.cursor(row_factory=tuple_row)
        return cursor.execute(DIALECT[statement], {**self._time, **facts})

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a statement once for all rows: it unnests their columns, :c1 and so on. Raises psycopg.Error."""
        if not rows:
            return 0
        columns = {f"c{number}": list(column) for number, column in enumerate(zip(*rows, strict=True), start=1)}
        return self.connection.execute(DIALECT[statement], self._time | columns).rowcount
