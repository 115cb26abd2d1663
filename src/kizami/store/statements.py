"""SQL lives in .sql files: each statement under a line `-- name: its_name`, the same names in every dialect.

A room names its statements; the store that it runs on has their text.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HEADING: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


class Statement(NamedTuple):
    """The name of a statement: which file, and which in it."""

    area: str
    name: str


class Area:
    """The statements of one file by name."""

    def __init__(self, area: str) -> None:
        self._area = area

    def __getitem__(self, name: str) -> Statement:
        return Statement(self._area, name)


def load(area: str) -> Area:
    """Return the statements of an area, whatever the dialect."""
    return Area(area)


def read(package: str, area: str) -> Mapping[str, str]:
    """Return the statements of one dialect's `sql/<area>.sql` by name."""
    text = (files(package) / "sql" / f"{area}.sql").read_text(encoding="utf-8")
    parts = _HEADING.split(text)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


class Dialect(dict[Statement, str]):
    """The statements' text in one dialect, each file read when first used. Raises KeyError for one it doesn't have."""

    def __init__(self, package: str, compiled: Callable[[str], str] = str) -> None:
        super().__init__()
        self._package = package
        self._compiled = compiled

    def __missing__(self, statement: Statement) -> str:
        for name, text in read(self._package, statement.area).items():
            self.setdefault(Statement(statement.area, name), self._compiled(text))
        return dict.__getitem__(self, statement) if dict.__contains__(self, statement) else self._unknown(statement)

    def text(self, statement: Statement, pieces: Mapping[str, str]) -> str:
        """Return a statement's text, with its pieces in it where it has some."""
        text = self[statement]
        return text.format(**{name: self._compiled(piece) for name, piece in pieces.items()}) if pieces else text

    def _unknown(self, statement: Statement) -> str:
        raise KeyError(f"{self._package} has no statement {statement.name} in sql/{statement.area}.sql")
