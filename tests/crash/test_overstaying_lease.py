"""A lease whose holder outlasts its worker's stop is freed as soon as its process has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.overstay_app import make_app
from tests.crash.processes import ROOT, until


@contextmanager
def worker(database: Path, notes: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker in a process of its own; it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.overstay_app", str(database), str(notes)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def begun(notes: Path) -> int:
    return notes.read_text(encoding="utf-8").count("begun")


async def until_begun(notes: Path, times: int) -> None:
    async def is_so() -> bool:
        return begun(notes) >= times

    await until(is_so, f"the performer has begun {times} times", seconds=30)


async def test_a_lease_that_a_stopped_worker_kept_is_free_for_the_next_one_at_once(tmp_path: Path) -> None:
    database, notes = tmp_path / "kizami.db", tmp_path / "notes"
    notes.touch()
    with worker(database, notes) as first:
        await until_begun(notes, 1)
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0
    app = make_app(database, notes)
    async with app.running(worker=False):
        (left,) = await app.store.workers.list(app.name)
        assert left.note is not None
        assert "freed as soon as its process has ended" in left.note
        with worker(database, notes):
            await until_begun(notes, 2)
        ledger = await app.schedules.ledger("hang")
    assert "skipped_lease" not in {line.outcome for line in ledger}
