from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kizami.core.options import EnqueueChanges, JobOptions, OptionChanges
from kizami.core.states import JobState

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_runs_and_does_what_it_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.partition(" ")[2] for line in ran.stdout.splitlines()]
    assert lines == [
        'COMPLETED {"receipt":"r1"}',
        'COMPLETED {"receipt":"r3"} failed completed',
        "CANCELLED the order was withdrawn cancelled",
        'COMPLETED {"receipt":"r5"} snoozed completed',
    ]


def test_the_page_names_every_option_and_state_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    assert set(rows) == set(OptionChanges.__annotations__)
    only_of_the_call = set(EnqueueChanges.__annotations__) - set(OptionChanges.__annotations__)
    assert all(f"`{name}`" in PAGE for name in only_of_the_call)
    options = JobOptions()
    assert rows["priority"] == str(options.priority)
    assert rows["max_attempts"] == str(options.max_attempts)
    assert rows["timeout"] == f"{options.timeout_ms // 1000} s"
    assert rows["unique_for"] == f"{options.unique_for_ms // 3_600_000} h"
    assert options.guarantee.value in rows["guarantee"]
    assert all(state.value in PAGE for state in JobState)
