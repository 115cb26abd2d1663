"""`kizami run` processes that mirror into a test's sandbox, one token each, stopped and continued at will."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kizami.app.app import Kizami
from kizami.sandbox.log import CallLog, Entry
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, SandboxSettings
from tests.crash.mirror_app import ALERTS, HELD
from tests.crash.processes import ROOT, freeze

OLD, NEW = "xoxb-old", "xoxb-new"
ITEMS = ("first", "second", "third")
_PATIENCE_SECONDS = 60


def two_tokens() -> Sandbox:
    """Return a sandbox in which both processes are the same bot, and its log tells them apart by their token."""
    bots = (BotSeed(OLD, "mirror"), BotSeed(NEW, "mirror"))
    return Sandbox(SandboxSettings(bots=bots, rate_limited=False))


@dataclass(frozen=True, slots=True)
class MirrorProcess:
    """One `kizami run`."""

    process: subprocess.Popen[str]
    database: Path

    async def says(self, pattern: str) -> str:
        """Wait until its log has a line that matches; return it."""
        return await self._line(pattern, self.process.stderr)

    async def is_held(self) -> None:
        """Wait until it has reached the point at which it is to wait."""
        await self._line(HELD, self.process.stdout)

    def freeze(self) -> None:
        """Stop it where it is."""
        freeze(self.process, self.database)

    def thaw(self) -> None:
        """Let it go on, from the point at which it waits too."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.process.send_signal(signal.SIGCONT)

    async def stop(self) -> None:
        """End it gracefully: what it has to report is recorded then."""
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.communicate)
        assert self.process.returncode == 0

    async def _line(self, pattern: str, stream: Iterator[str] | None) -> str:
        def look() -> str:
            assert stream is not None
            seen = []
            for line in stream:
                seen.append(line)
                if re.search(pattern, line):
                    return line
            raise AssertionError(f"ended without a line like {pattern}: {''.join(seen)}")

        return await asyncio.to_thread(look)


@contextmanager
def mirror_process(sandbox: Sandbox, database: Path, token: str, **environment: str) -> Iterator[MirrorProcess]:
    """Start a process; it is killed at the end if it hasn't ended by itself."""
    ours = {
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        "KIZAMI_DATABASE_URL": f"sqlite:///{database}",
        "SLACK_API_URL": sandbox.api_url,
        "SLACK_BOT_TOKEN": token,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", "run", "tests.crash.mirror_app:app", "--no-web"],
        cwd=database.parent,
        env={**os.environ, **ours, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield MirrorProcess(process, database)
        finally:
            process.kill()


async def until(sandbox: Sandbox, holds: Callable[[CallLog], bool]) -> None:
    """Wait until something is true of the sandbox's own log."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await sandbox.log.until(holds)


def item_of(entry: Entry) -> str:
    """Return which notice a post is."""
    return str(entry.delivery["delivery"]).rpartition("/")[2]


def posts_by(log: CallLog, token: str | None = None) -> Counter[str]:
    """Return how often each notice was accepted, from one process or from any."""
    return Counter(item_of(entry) for entry in log.posts(ALERTS) if token in {None, entry.token})


def watcher(database: Path) -> Kizami:
    """Return the app as the test looks at it."""
    return Kizami("mirrored", database_url=f"sqlite:///{database}")
