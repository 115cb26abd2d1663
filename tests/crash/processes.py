"""Real worker processes that a test starts, kills and freezes, and what they leave in the notes and the database."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from kizami.core.errors import StoreError
from kizami.core.states import OUTSTANDING
from kizami.runtime import SystemClock
from kizami.store.protocol import FireRecord
from tests.crash.sigkill_app import Victim, make_victim

ROOT = Path(__file__).resolve().parents[2]
CLOCK = SystemClock()


@dataclass(slots=True)
class Scene:
    """One database, its notes, and the processes on it; leaving it kills them all.

    The database is a SQLite file in the folder, unless `postgres_url` names another.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    postgres_url: str | None = None
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.notes.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in tuple(self.processes):
            self.kill(process)

    @property
    def database(self) -> Path:
        return self.folder / "kizami.db"

    @property
    def database_url(self) -> str:
        return self.postgres_url or f"sqlite:///{self.database}"

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    def victim(self) -> Victim:
        """Return the app as the test's own process uses it."""
        return make_victim(self.database_url, self.notes)

    def lines(self, kind: str) -> list[list[str]]:
        """Return the words of the notes of one kind, in order."""
        words = [line.split() for line in self.notes.read_text(encoding="utf-8").splitlines()]
        return [line for line in words if line[0] == kind]

    def begin(self) -> subprocess.Popen[str]:
        """Start a worker process without waiting for it."""
        log = self.folder / "log"
        python_path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        with log.open("a", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.sigkill_app", self.database_url, str(self.notes)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": python_path, **self.environment},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.processes.append(process)
        return process

    def start(self) -> subprocess.Popen[str]:
        """Start a worker process and wait until it works."""
        process = self.begin()
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n", f"a worker did not start: {(self.folder / 'log').read_text()}"
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        """End a process by SIGKILL, as a crash of the machine's power would."""
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self.processes.remove(process)


def freeze(process: subprocess.Popen[str], database: Path) -> None:
    """Stop a process at a moment at which it doesn't hold the file's write lock: that would stop everybody."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        if is_writable(database):
            return
        process.send_signal(signal.SIGCONT)


def is_writable(database: Path) -> bool:
    """Tell whether nobody holds the write lock of a SQLite file."""
    with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.execute("ROLLBACK")
        return True


async def until(condition: Callable[[], Awaitable[bool]], what: str, *, seconds: float = 60) -> float:
    """Wait until a condition holds; return how many seconds that took. Raises AssertionError when time is up."""
    begun = CLOCK.boot_ms()
    while not await condition():
        assert CLOCK.boot_ms() - begun < seconds * 1000, f"not within {seconds} s: {what}"
        await CLOCK.sleep(0.02)
    return (CLOCK.boot_ms() - begun) / 1000


def undisturbed(_: int, __: Random) -> None:
    """Let kills be all that happens."""


async def kill_at_random(
    scene: Scene,
    kills: int,
    seed: int,
    *,
    workers: int = 2,
    disturb: Callable[[int, Random], None] = undisturbed,
) -> None:
    """Keep some workers on the scene and kill one of them at random moments, some of them while it starts.

    `disturb` is called after each kill, with its number from 1.
    """
    chance = Random(seed)  # noqa: S311 - repeatable on purpose
    while len(scene.processes) < workers:
        scene.start()
    for number in range(1, kills + 1):
        await CLOCK.sleep(chance.uniform(0.0, 1.0))
        scene.kill(chance.choice(scene.processes))
        scene.begin()
        disturb(number, chance)


async def all_ended(victim: Victim) -> bool:
    """Tell whether no job is waiting or running, ticks' jobs aside; a database that is away tells nothing."""
    try:
        counts = await victim.app.jobs.count_by_state()
    except StoreError:
        return False
    return not any(counts.get(binding, {}).get(state, 0) for binding in ("again", "once") for state in OUTSTANDING)


def check_each_tick_once(scene: Scene, ledger: tuple[FireRecord, ...]) -> int:
    """Assert that the ledger has each planned second exactly once, fired or accounted for; return how many."""
    lines = sorted(ledger, key=lambda line: line.planned_at)
    for before, after in pairwise(lines):
        assert after.planned_at == before.planned_last_at + 1_000, f"a tick is doubled or lost: {before}, {after}"
    for line in lines:
        assert line.count == (line.planned_last_at - line.planned_at) // 1_000 + 1, f"a stretch is miscounted: {line}"
    jobs = [line.job_id for line in lines if line.job_id is not None]
    assert len(jobs) == len(set(jobs)), "two ticks have one job"
    seen_until = lines[-1].planned_last_at  # the workers tick on meanwhile
    done = {at for words in scene.lines("tick") if (at := int(words[1])) <= seen_until}
    fired = {line.planned_at for line in lines if line.job_id is not None}
    assert done <= fired, f"ticks were done that the ledger doesn't have as fired: {sorted(done - fired)}"
    return sum(line.count for line in lines)
