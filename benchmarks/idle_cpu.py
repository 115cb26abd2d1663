"""How much of a core an idle `kizami run` takes: one schedule that isn't due for months, no job, on SQLite.

Read from /proc/<pid>/stat over a minute, with and without the pages, both processes at the same time.

    python benchmarks/idle_cpu.py [SECONDS]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kizami.runtime import SystemClock

APP = """
from kizami import Kizami
app = Kizami("idle")

@app.scheduled("rarely", cron="0 0 29 2 *")
def rarely() -> None: ...
"""
KINDS = {"worker and pages": ("--port", "0"), "worker alone": ("--no-web",)}
SECONDS = 60.0
SETTLING_SECONDS = 3.0
MOST_PERCENT = 0.5


@contextmanager
def idle_process(folder: Path, options: tuple[str, ...]) -> Iterator[int]:
    """Start `kizami run` on a new database and yield its process id when it works."""
    folder.mkdir()
    (folder / "idle.py").write_text(APP, encoding="utf-8")
    environment = os.environ | {"KIZAMI_DATABASE_URL": "sqlite:///kizami.db", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "kizami", "run", "idle:app", *options]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("app idle is running" in line for line in process.stderr), "kizami run did not start"
            yield process.pid
        finally:
            process.kill()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(pids: list[int], seconds: float) -> list[float]:
    """Return the share of a core, in percent, that each process takes over a time."""
    clock = SystemClock()
    await clock.sleep(SETTLING_SECONDS)
    before, began = [cpu_seconds(pid) for pid in pids], clock.boot_ms()
    await clock.sleep(seconds)
    taken = (clock.boot_ms() - began) / 1000
    return [100 * (cpu_seconds(pid) - start) / taken for pid, start in zip(pids, before, strict=True)]


def main() -> None:
    """Measure, print one Markdown table, and fail above the limit."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with TemporaryDirectory() as folder, ExitStack() as processes:
        started = [
            processes.enter_context(idle_process(Path(folder) / str(number), options))
            for number, options in enumerate(KINDS.values())
        ]
        percents = asyncio.run(measure(started, seconds))
    print("| kizami run, nothing due | % of a core |\n| --- | ---: |")
    for kind, percent in zip(KINDS, percents, strict=True):
        print(f"| {kind} | {percent:.2f} |")
    if max(percents) >= MOST_PERCENT:
        sys.exit(f"An idle process takes {max(percents):.2f} % of a core, {MOST_PERCENT} % is the limit.")


if __name__ == "__main__":
    main()
