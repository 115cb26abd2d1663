"""The project's own files, as the tidy tests see them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
_CODE = ("src", "tests", "benchmarks", "prove")
_NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", ".hypothesis"}
_CACHES = ("_cache", ".egg-info")


def files(*suffixes: str) -> list[Path]:
    """Return every file of the tree that has one of the suffixes (all files when none is given), caches left out."""
    return [path for path in _walk(ROOT) if not suffixes or path.suffix in suffixes]


def texts() -> list[tuple[Path, str]]:
    """Return every text file of the tree with its content."""
    return [(path, text) for path in files() if (text := _text(path)) is not None]


def code() -> list[Path]:
    """Return every Python file of the tree."""
    return [path for path in files(".py") if path.relative_to(ROOT).parts[0] in _CODE]


def shown(path: Path) -> str:
    """Return the path as a reader of a failure wants it: relative to the root."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_OURS or path.name.endswith(_CACHES):
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
