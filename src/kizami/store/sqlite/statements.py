"""SQL lives in .sql files: each statement under a line `-- name: its_name`."""

from __future__ import annotations

import re
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADING: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(area: str) -> Mapping[str, str]:
    """Return the statements of `sql/<area>.sql` by name."""
    text = (files("kizami.store.sqlite") / "sql" / f"{area}.sql").read_text(encoding="utf-8")
    parts = _HEADING.split(text)[1:]
    return MappingProxyType({name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)})
