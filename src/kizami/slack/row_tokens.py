"""What a claim column holds: which database claims the row, with which lineage, and which claim it is.

A row that may have been posted keeps its token, and whoever claims it next goes on with the same lineage. Messages of
the row carry the lineage, so that every database that shares the table can find them in the channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TAG_LENGTH: Final = 8
_LINEAGE_END: Final = 20
TOKEN_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class RowToken:
    """A claim in a table; `tag` is the beginning of a database's id. `drawn` are 32 random hexadecimal digits."""

    tag: str
    drawn: str

    def text(self, before: str | None) -> str:
        """Return the token of a claim, which goes on with the lineage of the one that is there."""
        lineage = lineage_of(before) or self.drawn[-24:-12]
        return f"{self.tag}{lineage}{self.drawn[-12:]}"


def lineage_of(token: str | None) -> str | None:
    """Return the lineage of a token; of one that isn't of this form, there is none."""
    if token is None or len(token) != TOKEN_LENGTH:
        return None
    return token[TAG_LENGTH:_LINEAGE_END]
