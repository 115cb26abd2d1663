"""What a user's table looks like: every column that plays a part is there, of a type that can play it, and writable."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import column, false, inspect, literal_column, select, table, update
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.types import NullType

from kizami.slack.source_database import reason_of
from kizami.slack.user_table_types import (
    Converter,
    DueKind,
    converter_of,
    due_kind_of,
    expiry_problem,
    marker_problem,
    text_problem,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnClause, ColumnElement, Connection, TableClause
    from sqlalchemy.engine import Inspector
    from sqlalchemy.engine.interfaces import ReflectedColumn

    from kizami.slack.user_table_names import TableNames

NOW_MS = {
    # Each database's own clock, so that machines with wrong clocks agree on when a claim has expired.
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    "mysql": "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
    "mariadb": "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The table as statements use it. Of SQLite, values come as they are stored: dates are text there."""

    table: TableClause
    ids: tuple[ColumnClause[Any], ...]
    converters: tuple[Converter, ...]
    marker: ColumnClause[Any]
    due: ColumnClause[Any] | None
    due_kind: DueKind
    claim_token: ColumnClause[Any] | None
    claim_expires: ColumnClause[Any] | None
    set_aside: ColumnClause[Any] | None
    set_aside_length: int | None
    read: tuple[ColumnClause[Any], ...]
    where: ColumnElement[Any] | None


def look_at(connection: Connection, names: TableNames) -> Shape:
    """Return the table's shape. Raises DefinitionError naming the table, the column and the remedy."""
    found = _columns(inspect(connection), names)
    dialect = connection.dialect.name
    _require_a_key(inspect(connection), names, found)
    for problem in (
        marker_problem(names.marker, found[names.marker]),
        text_problem("set_aside", names.set_aside, found.get(names.set_aside or "")),
        text_problem("claim_token", names.claim_token, found.get(names.claim_token or "")),
        expiry_problem(dialect, names.claim_expires, found.get(names.claim_expires or "")),
    ):
        if problem:
            raise names.refusal(*problem)
    shape = _shape(dialect, names, found)
    _require_writable(connection, names, shape)
    return shape


def _columns(inspector: Inspector, names: TableNames) -> dict[str, ReflectedColumn]:
    try:
        found = {each["name"]: _plain(each) for each in inspector.get_columns(names.table, names.schema)}
    except NoSuchTableError:
        found = {}
    if not found:
        raise names.refusal(
            "it isn't there.",
            _nearest(names.table, inspector.get_table_names(names.schema))
            + " A table of another schema is named schema.table.",
            "table",
        )
    wanted = [*names.parts(), *(("columns", name) for name in names.columns or ())]
    for part, name in wanted:
        if name not in found:
            raise names.refusal(f"it has no column {name} ({part}).", _nearest(name, list(found)), part)
    return found


def _plain(found: ReflectedColumn) -> ReflectedColumn:
    """Return a column of PostgreSQL's domains as one of the type behind it."""
    kind = found["type"]
    return {**found, "type": kind.data_type} if isinstance(kind, DOMAIN) else found


def _nearest(name: str, present: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, present, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    shown = ", ".join(sorted(present)[:20])
    return f"There are: {shown}." if shown else "There are none."


def _require_a_key(inspector: Inspector, names: TableNames, found: dict[str, ReflectedColumn]) -> None:
    """Refuse an id that may be shared by rows: one marker would stand for all of them."""
    is_view = names.table in inspector.get_view_names(names.schema)
    if is_view and inspector.dialect.name == "sqlite":
        raise names.refusal(
            "it is a view, and SQLite doesn't say how many rows an update of a view has marked.",
            "Name the table behind it, and say which rows with where=.",
            "table",
        )
    if is_view:
        return
    primary: list[str] = inspector.get_pk_constraint(names.table, names.schema)["constrained_columns"]
    keys: list[Sequence[Any]] = [primary]
    keys += [each["column_names"] for each in inspector.get_unique_constraints(names.table, names.schema)]
    keys += [each["column_names"] for each in inspector.get_indexes(names.table, names.schema) if _is_plain(each)]
    if not any(key and set(key) <= set(names.ids) for key in keys):
        remedy = f"Name its primary key: {', '.join(primary)}." if primary else "Make it the primary key, or unique."
        raise names.refusal(f"several rows may have the same {', '.join(names.ids)} (id).", remedy, "id")
    for name in names.ids:
        if found[name]["nullable"] and name not in primary:
            raise names.refusal(f"column {name} (id) may be NULL.", "Make it NOT NULL, or name the primary key.", "id")


def _is_plain(index: Any) -> bool:
    """Tell whether an index makes whole columns unique in all rows."""
    partial = any(
        key.endswith("_where") and value is not None for key, value in index.get("dialect_options", {}).items()
    )
    return bool(index["unique"]) and not partial and None not in index["column_names"]


def _shape(dialect: str, names: TableNames, found: dict[str, ReflectedColumn]) -> Shape:
    def made(name: str) -> ColumnClause[Any]:
        return column(name, NullType() if dialect == "sqlite" else found[name]["type"])

    bookkeeping = {names.marker, names.claim_token, names.claim_expires, names.set_aside}
    shown = names.columns if names.columns is not None else [name for name in found if name not in bookkeeping]
    used = dict.fromkeys([*(name for _, name in names.parts()), *shown])
    whole = table(names.table, *map(made, used), schema=names.schema)

    def part(name: str | None) -> ColumnClause[Any] | None:
        return None if name is None else whole.c[name]

    due = found[names.due] if names.due else None
    return Shape(
        whole,
        tuple(whole.c[name] for name in names.ids),
        tuple(converter_of(dialect, names, name, found[name]) for name in names.ids),
        whole.c[names.marker],
        part(names.due),
        due_kind_of(dialect, names, due),
        part(names.claim_token),
        part(names.claim_expires),
        part(names.set_aside),
        getattr(found[names.set_aside]["type"], "length", None) if names.set_aside else None,
        tuple(whole.c[name] for name in dict.fromkeys([*shown, *names.ids, *([names.due] if names.due else [])])),
        None if names.where is None else literal_column(f"({names.where})"),
    )


def _require_writable(connection: Connection, names: TableNames, shape: Shape) -> None:
    """Try what will be written and asked, on no row: rights, views and generated columns show themselves now."""
    written = [shape.marker, shape.claim_token, shape.claim_expires, shape.set_aside]
    nothing = {each: None for each in written if each is not None}
    try:
        connection.execute(update(shape.table).where(false()).values(nothing))
        conditions = [] if shape.where is None else [shape.where]
        connection.execute(select(*shape.read).where(*conditions).limit(0))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        raise names.refusal(
            f"the database refuses what has to be written or read: {reason_of(error)}.",
            "Give the user of the URL the right to select its columns and to update the marker"
            " and the other columns named here; a view must be updatable.",
            "table",
        ) from error
    if not connection.dialect.supports_sane_rowcount:
        raise names.refusal(
            f"its driver ({connection.dialect.driver}) doesn't say how many rows an update touched.",
            "Use another driver.",
            "database",
        )
