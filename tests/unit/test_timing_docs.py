"""The page on timing says what the code does."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "timing.md"


def test_every_example_of_the_page_runs() -> None:
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert attempted > 20
