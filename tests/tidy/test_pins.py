from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import ROOT


def test_every_installed_requirement_is_pinned_and_at_its_pin() -> None:
    """Two people who run the same command get the same versions, today and in a year."""
    pins, installed = _pins(), {name: metadata.version(name) for name in _required()}
    assert {name: version for name, version in installed.items() if pins.get(name) != version} == {}


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (Requirement(line) for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def _required() -> set[str]:
    """Return every distribution that the project and its extras need on this machine, direct and indirect."""
    waiting, seen = list(_direct()), set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            name = canonicalize_name(requirement.name)
            if (name, extra) not in seen:
                seen.add((name, extra))
                waiting += _needs(name, extra)
    return {name for name, _ in seen}


def _direct() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = (project["dependencies"], *project["optional-dependencies"].values())
    found = (Requirement(line) for group in groups for line in group)
    return (requirement for requirement in found if requirement.name != project["name"])


def _needs(name: str, extra: str) -> list[Requirement]:
    found = map(Requirement, metadata.requires(name) or [])
    return [need for need in found if need.marker is None or need.marker.evaluate({"extra": extra})]
