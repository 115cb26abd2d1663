from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page_run_one_after_the_other(tmp_path: Path) -> None:
    for example in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        command = [sys.executable, "-c", example]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
