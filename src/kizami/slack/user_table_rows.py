"""The rows of a user's table: one short transaction for each thing that happens, every write guarded by its condition.

Everything here blocks; `UserRows.call` runs it in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import and_, case, false, func, literal_column, not_, or_, select, true, update
from sqlalchemy.exc import SQLAlchemyError

from kizami.engine.threads import Threads
from kizami.slack.source_database import reason_of, require_file
from kizami.slack.user_table_names import UserTableError
from kizami.slack.user_table_shape import NOW_MS, look_at
from kizami.slack.user_table_types import DueKind, day_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, CursorResult, Engine

    from kizami.slack.row_tokens import RowToken
    from kizami.slack.user_table_names import Days, TableNames
    from kizami.slack.user_table_shape import Shape

Key = tuple[Any, ...]
T = TypeVar("T")
_ISO_DATE: Final = "____-__-__%"


@dataclass(frozen=True, slots=True)
class OwedRow:
    """A row without a marker; `due` is as the database gave it, None where none is asked."""

    key: Key
    due: Any
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A row as it was read in the transaction that claimed it; `before` is the token that the claim took over."""

    row: OwedRow
    token: str
    before: str | None


class UserRows:
    """A user's table behind an engine. Raises DefinitionError from `look`, UserTableError from everything."""

    def __init__(self, engine: Engine, names: TableNames) -> None:
        self._engine = engine
        self._names = names
        self._shown = f"{names} of {engine.url.render_as_string(hide_password=True)}"
        self._threads = Threads("kizami-user-table")
        self._known_shape: Shape | None = None

    async def call(self, work: Callable[[Connection], T]) -> T:
        """Run a transaction in a thread."""

        def run() -> T:
            require_file(self._engine.url)
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except SQLAlchemyError as error:
                raise UserTableError(
                    f"Table {self._shown} can't be used now: {reason_of(error)}.",
                    remedy="What it owes is still owed; the next tick goes on from there.",
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def look(self) -> None:
        """Look at the table once, before anything is written. Raises DefinitionError."""
        if self._known_shape is None:
            self._known_shape = await self.call(lambda connection: look_at(connection, self._names))

    @property
    def _shape(self) -> Shape:
        assert self._known_shape is not None, "look first"  # noqa: S101 - the one caller does
        return self._known_shape

    def item_of(self, key: Key) -> str:
        """Return a key as text: itself when it is one column, else a JSON list."""
        parts = [str(part) for part in key]
        return parts[0] if len(parts) == 1 else json.dumps(parts, ensure_ascii=False, separators=(",", ":"))

    def key_of(self, item: str) -> Key:
        """Return the key that `item_of` made text of."""
        parts = [item] if len(self._shape.ids) == 1 else json.loads(item)
        return tuple(convert(part) for convert, part in zip(self._shape.converters, parts, strict=True))

    def _key_or_none(self, item: str) -> Key | None:
        try:
            return self.key_of(item)
        except (ValueError, ArithmeticError):  # of before the table's key became another one
            return None

    def day_of(self, row: OwedRow, days: Days) -> str:
        """Return the local date (ISO) on which a row became due; the tick's when the table doesn't say."""
        kind = self._shape.due_kind
        return days.until.isoformat() if kind is DueKind.NEVER_ASKED else kind.day_of(row.due, days.zone)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def page(self, days: Days, after: OwedRow | None, limit: int, tag: str = "") -> list[OwedRow]:
        """Return rows without a marker that are due and claimed by no other database, by due date then id."""
        shape = self._shape
        order = [*([] if shape.due is None else [shape.due]), *shape.ids]
        place = [] if after is None else [_behind(order, self._place(after))]

        def read(connection: Connection) -> list[OwedRow]:
            conditions = [*self._owed(), self._is_free(connection, tag), *self._due(days), *place]
            statement = select(*shape.read).where(*conditions).order_by(*order).limit(limit)
            return [self._row(dict(row)) for row in connection.execute(statement).mappings()]

        return await self.call(read)

    async def count_old(self, days: Days) -> tuple[int, int]:
        """Return how many unmarked rows are due for too long, and how many don't say when they are due."""
        shape = self._shape
        if shape.due is None:
            return 0, 0
        readable = shape.due.like(_ISO_DATE) if shape.due_kind is DueKind.TEXT else true()
        old = and_(readable, shape.due < shape.due_kind.bound(days.since, days.zone))
        counts = select(_count(old), _count(not_(readable))).where(*self._owed(), shape.due.is_not(None))

        def read(connection: Connection) -> tuple[int, int]:
            found = connection.execute(counts).one()
            return int(found[0] or 0), int(found[1] or 0)

        return await self.call(read)

    async def markers(self, items: Sequence[str]) -> dict[str, str | None]:
        """Return the markers of the rows that are there, by item."""
        shape = self._shape
        wanted = or_(false(), *(and_(*self._is(key)) for item in items if (key := self._key_or_none(item))))

        def read(connection: Connection) -> dict[str, str | None]:
            found = connection.execute(select(*shape.ids, shape.marker).where(wanted))
            return {self.item_of(tuple(row[:-1])): row[-1] for row in found}

        return await self.call(read)

    # --- writing -----------------------------------------------------------------------------------------------------

    async def claim(self, key: Key, token: RowToken, expires_ms: int, days: Days | None = None) -> ClaimedRow | None:
        """Claim a row and read it as it is now; None: it isn't owed, or not due in these days, or somebody has it.

        Without claim columns nothing is written.
        """
        shape, owed = self._shape, self._owed_now(key, days)

        def write(connection: Connection) -> ClaimedRow | None:
            if shape.claim_token is None or shape.claim_expires is None:
                return self._read_owed(connection, owed, "", None)
            before = connection.execute(select(shape.claim_token).where(*self._is(key))).scalar()
            as_before = shape.claim_token.is_(None) if before is None else shape.claim_token == before
            made = token.text(before)
            values = {shape.claim_token: made, shape.claim_expires: _now_ms(connection) + expires_ms}
            free = self._is_free(connection, token.tag)
            if not self._one(connection.execute(update(shape.table).where(*owed, as_before, free).values(values))):
                return None
            return self._read_owed(connection, self._is(key), made, before)

        return await self.call(write)

    async def renew(self, key: Key, token: str, expires_ms: int, days: Days | None) -> ClaimedRow | None:
        """Let a claim begin anew and read the row as it is now; None: it is owed no longer, or the claim isn't ours."""
        shape, owed = self._shape, self._owed_now(key, days)

        def write(connection: Connection) -> ClaimedRow | None:
            if shape.claim_token is not None and shape.claim_expires is not None:
                values = {shape.claim_expires: _now_ms(connection) + expires_ms}
                mine = [*owed, *self._is_ours(token)]
                if not self._one(connection.execute(update(shape.table).where(*mine).values(values))):
                    return None
            return self._read_owed(connection, owed, token, None)

        return await self.call(write)

    def _owed_now(self, key: Key, days: Days | None) -> list[ColumnElement[Any]]:
        return [*self._is(key), *self._owed(), *([] if days is None else self._due(days))]

    def _read_owed(
        self, connection: Connection, conditions: Sequence[ColumnElement[Any]], token: str, before: str | None
    ) -> ClaimedRow | None:
        found = connection.execute(select(*self._shape.read).where(*conditions).limit(1)).mappings().first()
        return None if found is None else ClaimedRow(self._row(dict(found)), token, before)

    async def mark(self, key: Key, token: str, ts: str) -> bool:
        """Write the marker where there is none and the claim is ours; True also when this very ts stands there."""
        shape = self._shape
        conditions = [*self._is(key), shape.marker.is_(None), *self._is_ours(token)]
        values = {shape.marker: ts} | self._no_claim()

        def write(connection: Connection) -> bool:
            if self._one(connection.execute(update(shape.table).where(*conditions).values(values))):
                return True
            return bool(connection.execute(select(shape.marker).where(*self._is(key))).scalar() == ts)

        return await self.call(write)

    async def release(self, key: Key, token: str) -> None:
        """Give up the claim, where there are columns for it."""
        shape = self._shape
        if shape.claim_token is not None:
            statement = update(shape.table).where(*self._is(key), *self._is_ours(token)).values(self._no_claim())
            await self.call(lambda connection: self._one(connection.execute(statement)))

    async def set_aside(self, key: Key, token: str, note: str) -> None:
        """Write why a row left the queue, where there is a column for it."""
        shape = self._shape
        if shape.set_aside is not None:
            mine = [*self._is(key), shape.marker.is_(None), *self._is_ours(token)]
            statement = update(shape.table).where(*mine).values({shape.set_aside: self._cut(note)})
            await self.call(lambda connection: self._one(connection.execute(statement)))

    async def set_aside_old(self, days: Days, note: str) -> None:
        """Write it on every unmarked row that is due for too long, where there is a column for it."""
        shape = self._shape
        if shape.set_aside is None or shape.due is None:
            return
        old = shape.due < shape.due_kind.bound(days.since, days.zone)
        readable = [shape.due.like(_ISO_DATE)] if shape.due_kind is DueKind.TEXT else []

        def write(connection: Connection) -> None:
            free = self._is_free(connection, "")
            values = {shape.set_aside: self._cut(note)}
            connection.execute(update(shape.table).where(*self._owed(), free, *readable, old).values(values))

        await self.call(write)

    @property
    def has_set_aside(self) -> bool:
        """Tell whether the table itself remembers what is set aside."""
        return self._names.set_aside is not None

    # --- conditions --------------------------------------------------------------------------------------------------

    def _owed(self) -> list[ColumnElement[Any]]:
        shape = self._shape
        conditions: list[ColumnElement[Any]] = [shape.marker.is_(None), *(each.is_not(None) for each in shape.ids)]
        if shape.set_aside is not None:
            conditions.append(shape.set_aside.is_(None))
        return conditions if shape.where is None else [*conditions, shape.where]

    def _due(self, days: Days) -> list[ColumnElement[bool]]:
        shape = self._shape
        if shape.due is None:
            return []
        since, end = (shape.due_kind.bound(day, days.zone) for day in (days.since, day_after(days.until)))
        readable = [shape.due.like(_ISO_DATE)] if shape.due_kind is DueKind.TEXT else []
        return [*readable, shape.due >= since, shape.due < end]

    def _is(self, key: Key) -> list[ColumnElement[bool]]:
        return [column == part for column, part in zip(self._shape.ids, key, strict=True)]

    def _is_free(self, connection: Connection, tag: str) -> ColumnElement[bool]:
        """Return what a claim needs: nobody has the row, or our own database, or by the table's clock it has expired.

        Within our own database its claims, not those of the table, keep workers apart.
        """
        mine, expires = self._shape.claim_token, self._shape.claim_expires
        if mine is None or expires is None:
            return true()
        ours = mine.like(f"{tag}%") if tag else false()
        return or_(mine.is_(None), ours, expires.is_(None), expires < _now_ms(connection))

    def _is_ours(self, token: str) -> list[ColumnElement[bool]]:
        return [] if self._shape.claim_token is None else [self._shape.claim_token == token]

    def _no_claim(self) -> dict[Any, Any]:
        return {each: None for each in (self._shape.claim_token, self._shape.claim_expires) if each is not None}

    # --- rows --------------------------------------------------------------------------------------------------------

    def _row(self, values: dict[str, Any]) -> OwedRow:
        shape = self._shape
        return OwedRow(
            tuple(values[each.name] for each in shape.ids),
            None if shape.due is None else values[shape.due.name],
            values,
        )

    def _place(self, row: OwedRow) -> list[Any]:
        return [*([] if self._shape.due is None else [row.due]), *row.key]

    def _cut(self, note: str) -> str:
        return note[: self._shape.set_aside_length]

    def _one(self, result: CursorResult[Any]) -> bool:
        if result.rowcount > 1:  # undone: raising ends the transaction
            raise UserTableError(
                f"Table {self._shown} has several rows for one {', '.join(self._names.ids)}.",
                remedy="Name columns as id that tell its rows apart.",
            )
        return result.rowcount == 1


def _behind(columns: Sequence[ColumnElement[Any]], values: Sequence[Any]) -> ColumnElement[bool]:
    """Return what rows behind a place satisfy, in an order by these columns."""
    pairs = list(zip(columns, values, strict=True))
    return or_(
        *(and_(*(column == value for column, value in pairs[:n]), pairs[n][0] > pairs[n][1]) for n in range(len(pairs)))
    )


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _now_ms(connection: Connection) -> ColumnElement[int]:
    return literal_column(NOW_MS[connection.dialect.name])
