"""`kizami demo` as a person meets it: its words, a worker killed by hand, Ctrl-C, and a demo that is killed itself."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.cli_project import process_environment

KILL = r"kill -9 (\d+)"


@contextmanager
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a demo in a process group of its own, as a terminal does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", "demo"],
        cwd=folder,
        env=process_environment() | {"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Return the first match in what the demo says from now on."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"ended without {pattern}: {''.join(seen)}")


def test_the_demo_says_where_to_look_whom_to_kill_and_in_the_end_what_was_counted(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        line_with(process, r"Board +http://127\.0\.0\.1:\d+/channels/C0STATUS")
        line_with(process, r"Dashboard +http://127\.0\.0\.1:\d+/ +token: \S{16,}")
        victim = line_with(process, KILL)[1]
        line_with(process, r"The board is up, after \d+\.\d s")
        os.kill(int(victim), signal.SIGKILL)
        assert line_with(process, rf"Worker {victim} was killed; worker \d+ takes over. Again: {KILL}")[1] != victim
        os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
        said, _ = process.communicate()
        assert process.returncode == 0
        assert "Stopped, 1 kills of the worker." in said
        assert re.search(r"Board +1 posted, \d+ edits", said)
        assert re.search(r"Notices +\d+ posted, none of them twice", said)
        assert list(tmp_path.iterdir()) == []


def test_two_demos_run_side_by_side_at_ports_of_their_own(tmp_path: Path) -> None:
    with demo(tmp_path) as one, demo(tmp_path) as other:
        boards = {line_with(each, r"Board +(http\S+)")[1] for each in (one, other)}
        dashboards = {line_with(each, r"Dashboard +(http\S+)")[1] for each in (one, other)}
        assert (len(boards), len(dashboards)) == (2, 2)
        for each in (one, other):
            line_with(each, "The board is up")


def test_a_demo_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        worker = os.pidfd_open(int(line_with(process, KILL)[1]))
        line_with(process, "The board is up")
        process.kill()
        ended, _, _ = select.select([worker], [], [], 60)
        os.close(worker)
        assert ended == [worker]
