"""What a user names of a table: which table, and which of its columns plays which part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from kizami.core.errors import DefinitionError, KizamiError

if TYPE_CHECKING:
    from kizami.core.zone import TimeZone


class UserTableError(KizamiError):
    """A user's database could not be reached, or refused a statement; what it was asked is still owed."""

    code = "user_table"


@dataclass(frozen=True, slots=True)
class Days:
    """What is due: from `since` until `until`, local dates of `zone`."""

    since: date
    until: date
    zone: TimeZone


@dataclass(frozen=True, slots=True)
class TableNames:
    """The table and the parts of its columns, as the database spells them."""

    schema: str | None
    table: str
    ids: tuple[str, ...]
    marker: str
    due: str | None
    claim_token: str | None
    claim_expires: str | None
    set_aside: str | None
    columns: tuple[str, ...] | None
    """What the message is made of; None for all."""
    where: str | None

    def __post_init__(self) -> None:
        if (self.claim_token is None) != (self.claim_expires is None):
            missing = "claim_expires" if self.claim_expires is None else "claim_token"
            raise self.refusal(
                "a claim needs both of its columns.",
                f"Name {missing} too: a claim that never expired would stay with a worker that died.",
                missing,
            )
        parts = self.parts()
        for part, name in parts:
            if not isinstance(name, str) or not name:
                raise self.refusal(f"{part}={name!r} names no column.", "Give its name as text.", part)
        for part, name in parts:
            others = [other for other, same in parts if same == name and other != part]
            if others:
                raise self.refusal(
                    f"column {name} is named both as {part} and as {others[0]}.", "Give each a column of its own.", part
                )

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def parts(self) -> list[tuple[str, str]]:
        """Return each part with its column, ids first."""
        named = {
            "marker": self.marker,
            "due": self.due,
            "claim_token": self.claim_token,
            "claim_expires": self.claim_expires,
            "set_aside": self.set_aside,
        }
        return [("id", name) for name in self.ids] + [(part, name) for part, name in named.items() if name is not None]

    def refusal(self, said: str, remedy: str, field: str) -> DefinitionError:
        """Return the error that names this table, what is wrong, and what to do."""
        return DefinitionError(f"Table {self}: {said}", remedy=remedy, field=field)


def split_table(table: object) -> tuple[str | None, str]:
    """Return schema and name of `schema.table`, split at its first dot. Raises DefinitionError."""
    if not isinstance(table, str) or not table.strip("."):
        raise DefinitionError(f"{table!r} names no table.", remedy="Give its name as text.", field="table")
    schema, dot, bare = table.partition(".")
    return (schema, bare) if dot else (None, table)


def id_columns(id_: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the key, one or several. Raises DefinitionError."""
    names = (id_,) if isinstance(id_, str) else tuple(id_)
    if not names:
        raise DefinitionError("id names no column.", remedy="Name the columns of the primary key.", field="id")
    return names
