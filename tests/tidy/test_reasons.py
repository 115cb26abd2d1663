from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, code, shown

_RULE = re.compile(r'"[A-Z]+[0-9]*"')
_RULE_WITH_REASON = re.compile(r'^ +"[A-Z]+[0-9]*",? +# .+$')
_SILENCER = re.compile(r"#\s*(?:noqa|type:|pragma)", re.IGNORECASE)
_RULES = r"[A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*"
_WITH_REASON = re.compile(rf"# (?:noqa: {_RULES}|type: ignore\[[a-z, -]+\]|pragma: no cover)\W+(?![A-Z]+[0-9])\w.*")


def test_every_ignored_rule_says_why() -> None:
    """In pyproject.toml each ignored rule stands on a line of its own, with its reason."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.ruff.lint]")[2]
    rules = [line for line in settings.splitlines() if _RULE.search(line) and '"ALL"' not in line]
    assert rules
    assert [line for line in rules if not _RULE_WITH_REASON.match(line)] == []


def test_every_silenced_line_says_what_and_why() -> None:
    """A comment that silences a tool names the rule and the reason."""
    silencers = [(path, line, text) for path in code() for line, text in _comments(path) if _SILENCER.search(text)]
    assert [f"{shown(path)}:{line}: {text}" for path, line, text in silencers if not _says_why(text)] == []


@pytest.mark.parametrize(
    ("comment", "enough"),
    [
        ("# noqa: S311 - a seeded generator", True),
        ("# type: ignore[arg-type]  # the wrong type is the point of this test", True),
        ("# noqa", False),
        ("# noqa: S311", False),
        ("# noqa: S311, S603", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore[arg-type]  # noqa: S311", False),
    ],
)
def test_a_code_alone_is_no_reason(comment: str, *, enough: bool) -> None:
    assert _says_why(comment) is enough


def _says_why(comment: str) -> bool:
    return all(_WITH_REASON.fullmatch(part) for part in re.split(r"\s+(?=# (?:noqa|type:|pragma))", comment))


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
