from __future__ import annotations

import re
from pathlib import Path

from kizami import WorkerSettings

PAGE = (Path(__file__).parents[2] / "docs" / "performers.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "performers.md", "exec"), names)  # noqa: S102 - our own page
    assert {"app", "render"} <= set(names)


def test_the_page_names_the_numbers_that_workers_run_by() -> None:
    settings = WorkerSettings()
    assert f"`overstays_max`\n({settings.overstays_max})" in PAGE
    assert min(settings.grace_ms, settings.stop_ms) / 2 == 5_000
