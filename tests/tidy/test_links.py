from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import files, shown

_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)


def test_no_relative_link_is_dead() -> None:
    """A link leads to a file of this tree, and its fragment to a heading of that file."""
    assert [f"{shown(page)}: {link}" for page in files(".md") for link in _links(page) if not _lives(page, link)] == []


def test_a_dead_link_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`, three\n[a](page.md#one-two-three) [b](gone.md) [c](#four)\n```\n[d](no.md)\n```\n")
    assert [link for link in _links(page) if not _lives(page, link)] == ["gone.md", "#four"]


def _links(page: Path) -> Iterator[str]:
    for match in _LINK.finditer(_prose(page)):
        link = match[1] or match[2]
        if not _ELSEWHERE.match(link):
            yield link


def _lives(page: Path, link: str) -> bool:
    name, _, fragment = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not fragment or target.suffix != ".md" or fragment in _anchors(target))


def _anchors(page: Path) -> set[str]:
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(_prose(page))}


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))
