"""A transaction on PostgreSQL: named statements in PostgreSQL's dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from psycopg.rows import tuple_row

from kizami.core.storable import require_storable
from kizami.store.postgres.arrays import literal
from kizami.store.statements import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Cursor

    from kizami.store.postgres.connection import Connection, Row
    from kizami.store.statements import Statement
    from kizami.store.transaction import Moment

T = TypeVar("T")
_PARAMETER: Final = re.compile(r"(?<!:):([a-z]\w*)")


def compiled(text: str) -> str:
    """Return a statement with its parameters written as psycopg wants them; `::` stays a cast."""
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))


Call = tuple["Statement", tuple[tuple[str, Any], ...]]
Foreseen = dict[Call, "Cursor[Row]"]
"""Answers of statements that were sent ahead, each for its first run."""

DIALECT: Final = Dialect("kizami.store.postgres", compiled)


class PostgresTransaction:
    """The transaction that the connection is in."""

    __slots__ = ("_foreseen", "_late", "_time", "connection")

    def __init__(self, connection: Connection, moment: Moment, foreseen: Foreseen) -> None:
        self.connection = connection
        self._time = {"now": moment.now}
        self._foreseen = foreseen
        self._late: list[tuple[str, dict[str, Any]]] = []

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> Cursor[Row]:
        """Run a named statement. Raises InvalidInputError and psycopg.Error."""
        if self._foreseen and (found := self._foreseen.pop(call_of(statement, facts), None)) is not None:
            return found
        require_storable(facts)
        text = DIALECT.text(statement, pieces)
        return self._after_late(lambda: self.connection.execute(text, {**self._time, **facts}))

    def tuples(self, statement: Statement, facts: Mapping[str, Any], /) -> Cursor[tuple[Any, ...]]:
        """Run a named statement whose rows are read by place. Raises psycopg.Error."""
        cursor = self.connection.cursor(row_factory=tuple_row)
        return self._after_late(lambda: cursor.execute(DIALECT[statement], {**self._time, **facts}))

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a statement once for all rows: it unnests their columns, :c1 and so on. Raises psycopg.Error."""
        if not rows:
            return 0
        facts = self._time | columns(rows)
        return self._after_late(lambda: self.connection.execute(DIALECT[statement], facts)).rowcount

    def execute_late(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Run a statement once for all rows, on the way to the commit."""
        if rows:
            self._late.append((DIALECT[statement], self._time | columns(rows)))

    def commit(self) -> None:
        """Send what was left for the end, and the commit. Raises psycopg.Error."""
        self._after_late(lambda: self.connection.execute("COMMIT", prepare=False))

    def _after_late(self, run: Callable[[], T]) -> T:
        """Run a statement behind those that were left for later, all in one way to the server and back."""
        if not self._late:
            return run()
        late, self._late = self._late, []
        with self.connection.pipeline():
            for text, facts in late:
                self.connection.execute(text, facts)
            return run()


def call_of(statement: Statement, facts: Mapping[str, Any]) -> Call:
    """Return what tells one run of a statement from another."""
    return statement, tuple(facts.items())


def columns(rows: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    """Return rows as the parameters of a statement that unnests their columns."""
    return {f"c{number}": literal(column) for number, column in enumerate(zip(*rows, strict=True), start=1)}
