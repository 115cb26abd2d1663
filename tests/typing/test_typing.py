from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_type_checker_knows_the_payload_of_every_enqueue(tmp_path: Path) -> None:
    """Strict mypy accepts the right calls and, since unused ignores are errors, refuses each wrong one."""
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path)]
    run = subprocess.run(
        [*command, "tests/typing/enqueueing.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.stdout == "Success: no issues found in 1 source file\n", run.stdout + run.stderr
