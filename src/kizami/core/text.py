"""Which text can be kept by every store: PostgreSQL has no U+0000, and no database has halves of surrogate pairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kizami.core.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def require_storable(facts: Mapping[str, object]) -> None:
    """Raise InvalidInputError, naming the fact, for text that not every store can keep."""
    for name, value in facts.items():
        if not isinstance(value, str) or (value.isascii() and "\0" not in value):
            continue
        if (found := _UNSTORABLE.search(value)) is not None:
            raise InvalidInputError(
                f"The {name.replace('_', ' ')} contains U+{ord(found.group()):04X} at character {found.start() + 1}.",
                remedy="Leave it out: no database keeps it.",
                path=name,
            )
