"""Cursors over source rows: each row's deliveries and the move past it are one transaction."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.names import require_name
from kizami.core.times import to_epoch_ms, to_ms
from kizami.engine.context import LeaseLost, current_job
from kizami.engine.gathering import Gathering, begin_gathering, end_gathering
from kizami.store.protocol import CursorMove

if TYPE_CHECKING:
    from kizami.core.times import EpochMs

R = TypeVar("R")
Rows = AsyncIterable[R] | Iterable[R]
Query = Callable[[Any], "Rows[R] | Awaitable[Rows[R]]"]


class Cursor:
    """How far a reader has come in rows of a source, by name. Raises DefinitionError for a name that isn't one."""

    def __init__(self, name: str) -> None:
        self.name = require_name("Cursor", name)

    def rows(
        self,
        query: Query[R],
        position: Callable[[R], Any] | None = None,
        *,
        behind: timedelta = timedelta(0),
        at: Callable[[R], datetime] | None = None,
    ) -> CursorRows[R]:
        """Return the rows of `query(after)`, where `after` is the position of the last finished row, or None at first.

        The query returns rows in order of their position: an iterable, an async one, or a coroutine of either.
        `position` gives a row's position as JSON; by default it is the row's `id`. A row is finished when the next one
        is asked for; after a `break` or an exception it comes again. A loop raises CursorMovedError when another worker
        has moved the cursor in between; nothing of its row is kept then.

        `behind`, with `at` that gives a row's time of writing: the loop ends before the first row that is younger, by
        the clock of Kizami's database. That is for sources with several writers, whose lower ids may become visible
        later than higher ones; docs/mirror.md says how long. Raises DefinitionError for one without the other.
        """
        behind_ms = to_ms(behind, name="behind", least_ms=0)
        if (behind_ms > 0) != (at is not None):
            raise DefinitionError(
                f"Cursor {self.name}: rows() needs both behind and at, or neither.",
                remedy="Give behind=timedelta(...) and at=, a function that returns a row's time of writing.",
                field="behind",
            )
        return CursorRows(self.name, query, position or _id, behind_ms, at)


class CursorRows(Generic[R]):
    """The rows behind a cursor, to be looped over inside a job; each loop begins at the stored position."""

    def __init__(
        self,
        name: str,
        query: Query[R],
        position: Callable[[R], Any],
        behind_ms: int,
        at: Callable[[R], datetime] | None,
    ) -> None:
        self.name = name
        self.query = query
        self.position = position
        self.behind_ms = behind_ms
        self.at = at

    def __aiter__(self) -> _Loop[R]:
        """Begin a loop. Only the loop itself holds it, so what is gathered ends with it, however it ends."""
        return _Loop(self)


class _Loop(Generic[R]):
    def __init__(self, rows: CursorRows[R]) -> None:
        self._rows = rows
        self._source: AsyncIterator[R] | None = None
        self._gathering: Gathering | None = None
        self._read: str | None = None
        self._reached = ""
        self._until: EpochMs | None = None

    def __aiter__(self) -> _Loop[R]:
        return self

    async def __anext__(self) -> R:
        """Finish the row before, then return the next one with a fresh place for what is added for it."""
        await self._finish()
        if self._source is None:
            self._source = await self._ask()
        row = await anext(self._source)
        if self._is_young(row):
            self._source = _each(())  # whoever asks on gets no row behind it either
            raise StopAsyncIteration
        self._reached = json.dumps(self._rows.position(row), allow_nan=False, separators=(",", ":"))
        self._gathering = begin_gathering()
        return row

    async def _ask(self) -> AsyncIterator[R]:
        job = current_job()
        if self._rows.at is not None:
            self._until = await job.store.schedules.now() - self._rows.behind_ms
        self._read = await job.store.cursors.position(job.app, self._rows.name)
        rows = self._rows.query(None if self._read is None else json.loads(self._read))
        return _each(await rows if inspect.isawaitable(rows) else rows)

    def _is_young(self, row: R) -> bool:
        """Tell whether a row before this one may still be on its way. The clock was read before the rows were."""
        if self._rows.at is None or self._until is None:
            return False
        return to_epoch_ms(self._rows.at(row), name="at") > self._until

    async def _finish(self) -> None:
        """Commit what the row before has added, together with the move past it."""
        gathering, self._gathering = self._gathering, None
        if gathering is None:
            return
        end_gathering(gathering)
        job = current_job()
        await job.require_lease()
        move = CursorMove(self._rows.name, self._read, self._reached)
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
