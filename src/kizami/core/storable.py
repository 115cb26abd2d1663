"""Which values every store keeps.

PostgreSQL has no U+0000, no database has halves of surrogate pairs, and none has whole numbers of more than 64 bits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kizami.core.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def require_storable(facts: Mapping[str, object]) -> None:
    """Raise InvalidInputError, naming the fact, for a value that not every store can keep."""
    for name, value in facts.items():
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                _require_text(name, value)
        elif isinstance(value, int) and not _LEAST <= value <= _MOST:
            raise InvalidInputError(
                f"The {_words(name)} {value} is out of range.", remedy="Give one that fits 64 bits.", path=name
            )


def _require_text(name: str, value: str) -> None:
    if (found := _UNSTORABLE.search(value)) is not None:
        raise InvalidInputError(
            f"The {_words(name)} contains U+{ord(found.group()):04X} at character {found.start() + 1}.",
            remedy="Leave it out: no database keeps it.",
            path=name,
        )


def _words(name: str) -> str:
    return name.replace("_", " ")
