"""A child process never outlives its worker, however that one ends, and heeds no signal but its worker's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.processes import ROOT
from tests.simulation.real_app import all_gone, is_alive, started


@contextmanager
def worker(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker in a process of its own; it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child_app", str(folder / "kizami.db"), str(folder / "pids")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_worker_that_is_killed_takes_its_child_and_what_that_started_with_it(tmp_path: Path) -> None:
    with worker(tmp_path) as parent:
        pids = await started(tmp_path / "pids")
        for number in (signal.SIGTERM, signal.SIGINT):  # as a service manager sends to the whole service
            os.kill(pids[0], number)
        assert all(map(is_alive, pids))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        await all_gone(*pids)
