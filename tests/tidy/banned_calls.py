"""Finds uses of clocks, chance and sleeping in a syntax tree, whatever names they were imported under."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

SLEEPS = frozenset({"time.sleep", "asyncio.sleep", "asyncio.tasks.sleep"})
CHANCE = frozenset(
    {
        "os.getrandom",
        "os.urandom",
        "random.SystemRandom",
        "random.betavariate",
        "random.choice",
        "random.choices",
        "random.gauss",
        "random.getrandbits",
        "random.randbytes",
        "random.randint",
        "random.random",
        "random.randrange",
        "random.sample",
        "random.seed",
        "random.shuffle",
        "random.uniform",
        "secrets",
        "uuid.uuid1",
        "uuid.uuid4",
        "uuid.uuid6",
        "uuid.uuid7",
    }
)
CLOCKS = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "email.utils.formatdate",
        "email.utils.localtime",
        "threading.Timer",
        "time",
    }
)
EVERYTHING = SLEEPS | CHANCE | CLOCKS | {"random"}


class Use(NamedTuple):
    """One use of a banned name."""

    line: int
    name: str


def banned_uses(tree: ast.Module, banned: frozenset[str]) -> list[Use]:
    """Return each place that imports or names something banned, or something inside a banned module, in line order."""
    names = _names(tree)
    uses = {use for node in ast.walk(tree) for use in _uses(node, names) if _is_banned(use.name, banned)}
    return sorted(uses)


def _names(tree: ast.Module) -> dict[str, str]:
    """Return what each imported or plainly assigned name of the file stands for, dotted in full."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names |= {a.asname: a.name for a in aliases if a.asname}
                names |= {root: root for a in aliases if not a.asname for root in [a.name.partition(".")[0]]}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                names |= {a.asname or a.name: f"{module}.{a.name}" for a in aliases}
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name() | ast.Attribute() as value):
                if (origin := _dotted(value, names)) is not None and target not in names:
                    names[target] = origin
    return names


def _uses(node: ast.AST, names: dict[str, str]) -> Iterator[Use]:
    match node:
        case ast.Import(names=aliases):
            yield from (Use(node.lineno, alias.name) for alias in aliases)
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            yield from (Use(node.lineno, f"{module}.{alias.name}") for alias in aliases)
        case ast.Name(lineno=line) | ast.Attribute(lineno=line):
            if (name := _dotted(node, names)) is not None:
                yield Use(line, name)


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attribute):
            owner = _dotted(value, names)
            return None if owner is None else f"{owner}.{attribute}"
        case _:
            return None


def _is_banned(name: str, banned: frozenset[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:count]) in banned for count in range(1, len(parts) + 1))
