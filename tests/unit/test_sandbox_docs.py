from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kizami.sandbox.faults import FAULTS
from kizami.sandbox.methods import METHODS

_PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_prints_what_the_page_says() -> None:
    found = re.search(r"```python\n(import asyncio.*?)```\n\nprints\n\n```\n(.*?)```", _PAGE, re.DOTALL)
    assert found is not None
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment["PYTHONPATH"] = str(Path("src").resolve())
    printed = subprocess.check_output([sys.executable, "-c", found[1]], text=True, env=environment)
    assert printed == found[2]


@pytest.mark.parametrize("name", [*FAULTS, *METHODS])
def test_the_page_names_every_method_and_every_fault(name: str) -> None:
    assert re.search(rf"(?<![\w.]){re.escape(name)}\b", _PAGE)
