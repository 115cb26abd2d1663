"""The page on testing is a test file itself."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_every_example_of_the_page_runs() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {"__name__": "examples"}
    exec(compile("\n".join(examples), str(PAGE), "exec"), names)  # noqa: S102 - our own page
    tests = [test for name, test in names.items() if name.startswith("test_") and callable(test)]
    for test in tests:
        test()
    assert len(tests) == 4
