from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import ROOT, SOURCE, code, parsed, shown

_RUN_BY_NAME = ("__init__", "__main__")


def test_every_module_is_imported_or_started_by_something() -> None:
    """Code that nothing reaches still has to be read, typed and believed by everyone."""
    reached = _entry_points() | {name for path in code() for name in _imports(path) if name != _module(path)}
    modules = {_module(path): shown(path) for path in code() if _needs_a_reader(path)}
    assert {where for name, where in modules.items() if name not in reached} == set()


def _needs_a_reader(path: Path) -> bool:
    return path.is_relative_to(SOURCE) and path.stem not in _RUN_BY_NAME


def _module(path: Path) -> str:
    base = SOURCE if path.is_relative_to(SOURCE) else ROOT
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def _entry_points() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = [target for group in project.get("entry-points", {}).values() for target in group.values()]
    return {target.partition(":")[0] for target in (*project["scripts"].values(), *plugins)}


def _imports(path: Path) -> Iterator[str]:
    """Yield every module that the file may mean: `from a.b import c` names a.b and perhaps a.b.c."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases):
                yield module
                yield from (f"{module}.{alias.name}" for alias in aliases)
            case ast.Constant(value=str(text)) if text.startswith("kizami."):
                yield text.partition(":")[0]  # lazily imported by name, or started as `python -m`
