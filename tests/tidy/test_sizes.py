"""Ratchets on size: where one of these fails, split by idea rather than raise the number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from tests.tidy.tree import ROOT, SOURCE, code, files, parsed, shown

_FILE_LINES_MAX = 450
_FUNCTION_LINES_MAX = 60
_FUNCTION_LINES_MEDIAN = 10
_FUNCTION_LINES_NINE_OF_TEN = 30
_WRITTEN_BY_HAND = (".py", ".sql", ".html", ".css", ".js")


def test_no_file_is_too_long_to_read_in_one_go() -> None:
    long = {shown(path): count for path in files(*_WRITTEN_BY_HAND) if (count := _line_count(path)) > _FILE_LINES_MAX}
    assert long == {}


def test_no_function_is_too_long_to_see_at_once() -> None:
    long = {
        f"{shown(path)}:{function.lineno} {function.name}": count
        for path in code()
        for function in _functions(path)
        if (count := _function_lines(function)) > _FUNCTION_LINES_MAX
    }
    assert long == {}


def test_most_functions_are_short() -> None:
    """Half have fewer than 10 lines and nine of ten fewer than 30, signature and docstring included."""
    counts = [_function_lines(f) for path in code() if path.is_relative_to(SOURCE) for f in _functions(path)]
    assert median(counts) < _FUNCTION_LINES_MEDIAN
    assert quantiles(counts, n=10)[-1] < _FUNCTION_LINES_NINE_OF_TEN


def test_the_walk_sees_the_tree() -> None:
    """The ratchets above would pass over an empty list too."""
    seen = {shown(path) for path in code()}
    assert {"src/kizami/runtime.py", "tests/tidy/test_sizes.py"} <= seen
    assert ROOT / "Makefile" in files()


def _line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1
