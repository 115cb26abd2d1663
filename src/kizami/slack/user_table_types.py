"""Which types of columns can play which part in a user's table, and what to do about those that can't."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from sqlalchemy import types
from sqlalchemy.dialects import postgresql

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import ReflectedColumn

    from kizami.core.zone import TimeZone
    from kizami.slack.user_table_names import TableNames

Problem = tuple[str, str, str]
"""What is wrong, the remedy, and the field."""
Converter = Callable[[str], Any]
"""From an id as text to a value of its column."""

_TS_LENGTH: Final = 17
_TOKEN_LENGTH: Final = 32
_IDS: Final[dict[type, Converter]] = {
    int: int,
    str: str,
    UUID: UUID,
    Decimal: Decimal,
    date: date.fromisoformat,
}
_CLOCKS: Final = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})


class DueKind(StrEnum):
    """How a column says when something is due."""

    NEVER_ASKED = "never asked"
    TEXT = "text"
    """ISO dates, perhaps with a time after them; SQLite has no others."""
    DATE = "date"
    LOCAL = "local"
    """Date and time without a zone: the schedule's."""
    INSTANT = "instant"

    def bound(self, day: date, zone: TimeZone) -> object:
        """Return the first moment of a local date, as the column would hold it."""
        match self:
            case DueKind.DATE:
                return day
            case DueKind.LOCAL:
                return datetime.combine(day, time.min)
            case DueKind.INSTANT:
                return datetime.combine(day, time.min, zone.tzinfo)
            case _:
                return day.isoformat()

    def day_of(self, value: Any, zone: TimeZone) -> str:
        """Return the local date (ISO) that a value of the column means."""
        if self is DueKind.INSTANT:
            return str(value.astimezone(zone.tzinfo).date().isoformat())
        return str(value)[:10]


def day_after(day: date) -> date:
    """Return the next day."""
    return day + timedelta(days=1)


def marker_problem(name: str, found: ReflectedColumn) -> Problem | None:
    """Return why a column can't hold markers."""
    return text_problem("marker", name, found, _TS_LENGTH, " A ts is text; a number would lose digits of it.")


def text_problem(
    part: str, name: str | None, found: ReflectedColumn | None, least: int | None = None, why: str = ""
) -> Problem | None:
    """Return why a column can't hold text of this part."""
    if name is None or found is None:
        return None
    least = _TOKEN_LENGTH if part == "claim_token" else least
    kind = found["type"]
    if isinstance(kind, types.NullType):
        return _null_problem(part, name, found)  # SQLite's columns without a type hold what they are given
    shown = f"column {name} ({part}) is of type {_shown(kind)}"
    remedy = f"Use a column of type TEXT or VARCHAR({least or 200}) for it."
    is_text = isinstance(kind, types.String | postgresql.CITEXT) and not isinstance(kind, types.Enum)
    if not is_text or isinstance(kind, types.CHAR):
        return f"{shown}, which can't hold it as it is.{why}", remedy, part
    length = getattr(kind, "length", None)
    if least and length is not None and length < least:
        return f"{shown}, which is shorter than the {least} characters it needs.", remedy, part
    return _null_problem(part, name, found)


def _null_problem(part: str, name: str, found: ReflectedColumn) -> Problem | None:
    """Return why a column can't say "not yet" by NULL."""
    if not found["nullable"]:
        return f"column {name} ({part}) is NOT NULL, but NULL is what says not yet.", "Let it be NULL.", part
    default = found.get("default")
    if default is None or str(default).upper().startswith("NULL"):
        return None
    said = f"column {name} ({part}) has the default {default}, but NULL is what says not yet."
    return said, "Drop the default.", part


def expiry_problem(dialect: str, name: str | None, found: ReflectedColumn | None) -> Problem | None:
    """Return why a column can't hold when a claim expires, in epoch milliseconds."""
    if name is None or found is None:
        return None
    if dialect not in _CLOCKS:
        said = f"claims need the database's clock, and that of {dialect} isn't known here."
        return said, "Leave claim_token and claim_expires out, and give the schedule a lease.", "claim_expires"
    kind = found["type"]
    whole = types.Integer if dialect == "sqlite" else types.BigInteger
    if isinstance(kind, whole):
        return _null_problem("claim_expires", name, found)
    said = f"column {name} (claim_expires) is of type {_shown(kind)}; it has to hold epoch milliseconds."
    return said, f"Use a column of type {'INTEGER' if dialect == 'sqlite' else 'BIGINT'} for it.", "claim_expires"


def due_kind_of(dialect: str, names: TableNames, found: ReflectedColumn | None) -> DueKind:
    """Return how a column says when something is due. Raises DefinitionError for one that can't."""
    if found is None:
        return DueKind.NEVER_ASKED
    kind = found["type"]
    if isinstance(kind, types.DateTime) and dialect != "sqlite":
        return DueKind.INSTANT if kind.timezone else DueKind.LOCAL
    if isinstance(kind, types.Date) and dialect != "sqlite":
        return DueKind.DATE
    if isinstance(kind, types.String | types.Date | types.DateTime | types.NullType):
        return DueKind.TEXT
    raise names.refusal(
        f"column {names.due} (due) is of type {_shown(kind)}, which names no date.",
        "Use a column of a date or timestamp type, or of ISO dates as text.",
        "due",
    )


def converter_of(dialect: str, names: TableNames, name: str, found: ReflectedColumn) -> Converter:
    """Return what makes an id of its text. Raises DefinitionError for a type whose text isn't the id."""
    kind = found["type"]
    if isinstance(kind, types.NullType):
        return str
    try:
        converter = _IDS.get(kind.python_type)
    except NotImplementedError:
        converter = None
    if converter is None or isinstance(kind, types.Enum | types.Float):
        raise names.refusal(
            f"column {name} (id) is of type {_shown(kind)}, whose text doesn't name a row for good.",
            "Use a key of whole numbers, text, UUIDs or dates.",
            "id",
        )
    return str if dialect == "sqlite" and converter is not int else converter  # SQLite keeps text and numbers alone


def _shown(kind: Any) -> str:
    try:
        return str(kind)
    except Exception:  # noqa: BLE001 - a type that can't be spelt has a name still
        return type(kind).__name__
