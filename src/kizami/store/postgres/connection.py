"""Connecting to PostgreSQL, and what its rows look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import no_result
from psycopg.types.numeric import Int8Dumper

from kizami.core.errors import StoreVersionError
from kizami.store.postgres.faults import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kizami.store.postgres.place import Place

OLDEST_SERVER: Final = 150_000


class Row:
    """A row, by column name or by place."""

    __slots__ = ("_places", "_values")

    def __init__(self, values: Sequence[Any], places: dict[str, int]) -> None:
        self._values = values
        self._places = places

    def __getitem__(self, column: str | int) -> Any:
        return self._values[self._places[column] if isinstance(column, str) else column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def keys(self) -> Sequence[str]:
        """Return the names of the columns."""
        return list(self._places)


def row_maker(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> Callable[[Sequence[Any]], Row]:
    """Return what makes our rows of a cursor's values."""
    if cursor.description is None:
        return no_result
    places = {column.name: place for place, column in enumerate(cursor.description)}
    return lambda values: Row(values, places)


Connection = psycopg.Connection[Row]


def connect(place: Place) -> Connection:
    """Open a connection in autocommit mode; transactions are begun by name. Raises StoreError and its kinds."""
    try:
        connection = psycopg.Connection[Row].connect(place.conninfo, autocommit=True, row_factory=row_maker)
    except psycopg.Error as error:
        raise translate(error, place) from error
    # One type for all whole numbers: a statement is prepared once, and no sum overflows a smaller one.
    connection.adapters.register_dumper(int, Int8Dumper)
    if connection.info.server_version < OLDEST_SERVER:
        connection.close()
        raise StoreVersionError(
            f"The PostgreSQL of {place.shown} is too old.",
            remedy=f"Kizami needs {OLDEST_SERVER // 10_000} or newer.",
            place=place.shown,
        )
    if is_pooled(connection):
        connection.prepare_threshold = None
    return connection


def is_behind_pooler(connection: Connection) -> bool:
    """Tell whether `connect` found a pooler: nothing may be left in the session then."""
    return connection.prepare_threshold is None


def is_pooled(connection: Connection) -> bool:
    """Tell whether a pooler stands between: then the process that serves us isn't the one that greeted us.

    Behind a pooler in transaction mode nothing may be left in a session: no prepared statements, no LISTEN.
    """
    try:
        row = connection.execute("SELECT pg_backend_pid() AS pid", prepare=False).fetchone()
    except psycopg.Error:
        return True
    return row is None or row["pid"] != connection.info.backend_pid


def is_lost(connection: Connection) -> bool:
    """Tell whether a connection can't be used any more."""
    return connection.closed or connection.broken
