"""How a status board looks: a header, the rows as a table (or as plain sections where Slack refuses it), a stamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kizami.core.times import format_local, to_epoch_ms
from kizami.slack.blocks import Block, header, list_sections, section, table
from kizami.slack.limits import LIMITS, SMALLER, Limits
from kizami.slack.message import Message
from kizami.slack.text import cut, escape, shown

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.core.zone import TimeZone

NO_ROWS = "no rows"


@dataclass(frozen=True, slots=True)
class BoardView:
    """What is to be shown: title, column names and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def view_of(title: str, rows: Iterable[object], columns: Sequence[str] | None, zone: TimeZone) -> BoardView:
    """Return rows of any usual kind (mappings, dataclasses, objects, sequences) as cells under column names."""
    records = [_record(row) for row in rows]
    names = tuple(columns) if columns else _names(records)
    return BoardView(title, names, tuple(_cells(record, names, zone) for record in records))


def render(view: BoardView, limits: Limits = LIMITS) -> Message:
    """Return the board as a table; the same view gives the same message."""
    if not view.rows:
        return Message(_summary(view, limits), (header(view.title, limits), section(f"_{NO_ROWS}_", limits)))
    body = table(view.columns, view.rows, limits)
    return Message(_summary(view, limits), (header(view.title, limits), *body))


def render_smaller(view: BoardView, limits: Limits = SMALLER) -> Message:
    """Return the board as few short sections without a table: the second try after Slack refused the first."""
    blocks: list[Block] = [header(view.title, limits)]
    rows = list_sections(view.columns, view.rows, limits, blocks_left=limits.blocks - 2)
    return Message(_summary(view, limits), (*blocks, *(rows or [section(f"_{NO_ROWS}_", limits)])))


def stamp(synced_at: EpochMs, zone: TimeZone) -> str:
    """Return the line that says when the data was fetched, in local time with zone and offset."""
    return f"Last synced: {format_local(synced_at, zone)}"


def _summary(view: BoardView, limits: Limits) -> str:
    count = len(view.rows)
    rows = NO_ROWS if not count else f"{count:,} row{'s' if count > 1 else ''}"
    return cut(f"{escape(shown(view.title))}: {rows}", limits.text)


def _record(row: object) -> Mapping[str, Any] | Sequence[Any]:
    if isinstance(row, Mapping):
        return row
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    if hasattr(row, "_mapping"):  # a row of SQLAlchemy's
        return dict(row._mapping)  # noqa: SLF001 - its documented name
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        return row
    return vars(row) if hasattr(row, "__dict__") else (row,)


def _names(records: Sequence[Mapping[str, Any] | Sequence[Any]]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    widest = 0
    for record in records:
        if isinstance(record, Mapping):
            names.update(dict.fromkeys(map(str, record)))
        else:
            widest = max(widest, len(record))
    return tuple(names) or tuple(f"column {number}" for number in range(1, widest + 1))


def _cells(record: Mapping[str, Any] | Sequence[Any], names: tuple[str, ...], zone: TimeZone) -> tuple[object, ...]:
    values = [record.get(name) for name in names] if isinstance(record, Mapping) else list(record)
    return tuple(_shown(value, zone) for value in values)


def _shown(value: object, zone: TimeZone) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return format_local(to_epoch_ms(value), zone)
    return shown(value)
