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
def worker(folder: Path, performer: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker in a process of its own; it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child_app", performer, str(folder / "kizami.db"), str(folder / "pids")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_worker_that_is_killed_takes_its_child_and_what_that_started_with_it(tmp_path: Path) -> None:
    with worker(tmp_path, "forever") as parent:
        pids = await started(tmp_path / "pids")
        for number in (signal.SIGTERM, signal.SIGINT):  # as a service manager sends to the whole service
            os.kill(pids[0], number)
        assert all(map(is_alive, pids))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        await all_gone(*pids)


async def test_a_worker_that_is_killed_takes_a_child_that_holds_its_interpreter_with_it(tmp_path: Path) -> None:
    """No thread of the child gets to see the end of its line: only the kernel can end it."""
    with worker(tmp_path, "never_lets_go") as parent:
        pids = await started(tmp_path / "pids")
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        await all_gone(*pids)


UNGUARDED = """
import asyncio
import sys

from kizami import Kizami

app = Kizami(database_url="sqlite:///" + sys.argv[1])


@app.performer(runs_in="process", max_attempts=1)
def work() -> None: ...


async def main() -> None:
    async with app.running():
        job_id = await work.enqueue()
        while not (job := await app.jobs.get(job_id)) or job.ended_at is None:
            await asyncio.sleep(0.1)
    print(job.error)


asyncio.run(main())
"""


def test_a_main_module_that_starts_a_worker_unguarded_is_told_so_and_starts_no_second_one(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(UNGUARDED, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(program), str(tmp_path / "kizami.db")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "A worker can't start while a child process imports the program's main module" in ran.stdout
    assert ran.stdout.count("\n") == 1
