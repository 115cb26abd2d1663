from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.tidy.banned_calls import CHANCE, EVERYTHING, SLEEPS, banned_uses
from tests.tidy.tree import SOURCE, code, parsed, shown

_OWNERS = ("src/kizami/runtime.py", "src/kizami/testing/")


def test_only_the_runtime_owns_clocks_chance_and_sleeping() -> None:
    """Whatever runs under the virtual clock must get its time from there, or a simulated year is not one."""
    ours = [path for path in code() if path.is_relative_to(SOURCE) and not shown(path).startswith(_OWNERS)]
    assert [
        f"{shown(path)}:{line} {name}" for path in ours for line, name in banned_uses(parsed(path), EVERYTHING)
    ] == []


def test_tests_neither_sleep_nor_roll_dice() -> None:
    """A test waits for a signal or moves the clock; chance comes from a seed that the test names.

    `asyncio.sleep(0)` is allowed: it gives the event loop a turn and looks at no clock.
    """
    found = [
        f"{shown(path)}:{line} {name}"
        for path in code()
        if shown(path).startswith("tests/")
        for line, name in banned_uses(parsed(path), SLEEPS | CHANCE)
        if line not in _lines_that_yield(parsed(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import time",
        "from time import monotonic as tick",
        "import time as clock",
        "import datetime as dt\ndt.datetime.now()",
        "from datetime import datetime as D\nD.utcnow()",
        "from datetime import datetime\nnow = datetime.now",
        "from datetime import datetime\nD = datetime\nD.now()",
        "from datetime import date\ndate.today()",
        "from asyncio import sleep as nap",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)",
        "import asyncio as aio\naio.tasks.sleep",
        "import random",
        "from random import Random",
        "import secrets",
        "import uuid\nuuid.uuid4()",
        "from uuid import uuid4 as new",
        "import os\nos.urandom(8)",
        "import os.path\nos.urandom(8)",
        "def f():\n    import time",
    ],
)
def test_no_alias_hides_a_banned_use(source: str) -> None:
    assert banned_uses(ast.parse(source), EVERYTHING) != []


def test_look_alikes_are_left_alone() -> None:
    source = """
        import asyncio, datetime, os, uuid
        from datetime import time, timezone
        time(9, 30)
        datetime.datetime.fromtimestamp(0, tz=timezone.utc)
        uuid.UUID(int=0)
        asyncio.wait_for
        os.path
        clock.sleep(1)
        self.time.now()
    """
    assert banned_uses(ast.parse(dedent(source)), EVERYTHING) == []


def _lines_that_yield(tree: ast.Module) -> set[int]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.lineno for call in calls if ast.unparse(call) == "asyncio.sleep(0)"}
