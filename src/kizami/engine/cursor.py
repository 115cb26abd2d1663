"""Cursors over source rows: each row's deliveries and the move past it are one transaction."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from kizami.core.errors import InvalidInputError
from kizami.core.names import require_name
from kizami.engine.context import LeaseLost, current_job
from kizami.engine.gathering import Gathering, begin_gathering, end_gathering
from kizami.store.protocol import CursorMove

R = TypeVar("R")
Rows = AsyncIterable[R] | Iterable[R]
Query = Callable[[Any], "Rows[R] | Awaitable[Rows[R]]"]


class Cursor:
    """How far a reader has come in rows of a source, by name. Raises DefinitionError for a name that isn't one."""

    def __init__(self, name: str) -> None:
        self.name = require_name("Cursor", name)

    def rows(self, query: Query[R], position: Callable[[R], Any] | None = None) -> CursorRows[R]:
        """Return the rows of `query(after)`, where `after` is the position of the last finished row, or None at first.

        The query returns rows in order of their position: an iterable, an async one, or a coroutine of either.
        `position` gives a row's position as JSON; by default it is the row's `id`. A row is finished when the next one
        is asked for; after a `break` or an exception it comes again. A loop raises CursorMovedError when another worker
        has moved the cursor in between; nothing of its row is kept then.
        """
        return CursorRows(self.name, query, position or _id)


class CursorRows(Generic[R]):
    """The rows behind a cursor, to be looped over inside a job; each loop begins at the stored position."""

    def __init__(self, name: str, query: Query[R], position: Callable[[R], Any]) -> None:
        self._name = name
        self._query = query
        self._position = position

    def __aiter__(self) -> _Loop[R]:
        """Begin a loop. Only the loop itself holds it, so what is gathered ends with it, however it ends."""
        return _Loop(self._name, self._query, self._position)


class _Loop(Generic[R]):
    def __init__(self, name: str, query: Query[R], position: Callable[[R], Any]) -> None:
        self._name = name
        self._query = query
        self._position = position
        self._source: AsyncIterator[R] | None = None
        self._gathering: Gathering | None = None
        self._read: str | None = None
        self._reached = ""

    def __aiter__(self) -> _Loop[R]:
        return self

    async def __anext__(self) -> R:
        """Finish the row before, then return the next one with a fresh place for what is added for it."""
        await self._finish()
        if self._source is None:
            self._source = await self._ask()
        row = await anext(self._source)
        self._reached = json.dumps(self._position(row), allow_nan=False, separators=(",", ":"))
        self._gathering = begin_gathering()
        return row

    async def _ask(self) -> AsyncIterator[R]:
        job = current_job()
        self._read = await job.store.cursors.position(job.app, self._name)
        rows = self._query(None if self._read is None else json.loads(self._read))
        return _each(await rows if inspect.isawaitable(rows) else rows)

    async def _finish(self) -> None:
        """Commit what the row before has added, together with the move past it."""
        gathering, self._gathering = self._gathering, None
        if gathering is None:
            return
        end_gathering(gathering)
        job = current_job()
        await job.require_lease()
        move = CursorMove(self._name, self._read, self._reached)
        if await job.store.deliveries.add(job.app, gathering.deliveries, move, job.fence) is None:
            raise LeaseLost
        self._read = self._reached


async def _each(rows: Rows[R]) -> AsyncIterator[R]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row


def _id(row: Any) -> Any:
    if isinstance(row, Mapping) and "id" in row:
        return row["id"]
    if hasattr(row, "id"):
        return row.id
    raise InvalidInputError(
        f"A row of {type(row).__name__} has no id to remember.",
        remedy="Give rows(..., position=...) a function that returns a row's position as JSON.",
        path="position",
    )
