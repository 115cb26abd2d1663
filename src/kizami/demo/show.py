"""The demo for a person: a sandbox, a monitor and a worker that may be killed, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kizami.core.errors import ConfigurationError
from kizami.demo.mirror import ALERTS, STATUS
from kizami.demo.source import Source
from kizami.demo.supervisor import SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks
from kizami.runtime import SystemRuntime
from kizami.sandbox.log import CallLog
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings

CHUNK = 4
EVERY_MS = 1_000
SANDBOX_PORT = 8_780
DASHBOARD_PORT = 8_787
"""Both are only preferred: whoever has the first may have the second, others take any that are free."""


async def show(speed: float, *, lookup: bool, say: Callable[[str], None]) -> None:
    """Run sandbox, monitor and worker until SIGTERM or SIGINT, and say where to look."""
    runtime = SystemRuntime()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token = os.environ.get("KIZAMI_TOKEN") or runtime.entropy.token()
    with tempfile.TemporaryDirectory(prefix="kizami-demo-") as name:
        folder, sandbox = Path(name), Sandbox(SandboxSettings(time_scale=10), runtime)
        async with _serving(sandbox) as url:
            port = _free_port(DASHBOARD_PORT if url.endswith(f":{SANDBOX_PORT}") else 0)
            arguments = [str(folder), "--every", str(EVERY_MS), "--port", str(port)]
            arguments += [] if lookup else ["--no-lookup"]
            environment = {"SLACK_API_URL": f"{url}/api/", "SLACK_BOT_TOKEN": SANDBOX_TOKEN, "KIZAMI_TOKEN": token}
            teller = Teller(say, sandbox.log, lookup=lookup)
            supervisor = Supervisor(arguments, environment, folder / "worker.log", KillPlan([]), teller.worker_started)
            teller.welcome(url, f"http://127.0.0.1:{port}/", token, folder)
            board = asyncio.create_task(teller.board_shown(runtime))
            await _until_stopped(stop, supervisor, _replay_for_ever(folder, speed, runtime), teller)
            board.cancel()
            teller.goodbye()


@dataclass(slots=True)
class Teller:
    """Says what a person needs to know, and at the end what the sandbox's own log has counted."""

    say: Callable[[str], None]
    log: CallLog
    lookup: bool
    workers: list[int] = field(default_factory=list)

    def welcome(self, url: str, dashboard: str, token: str, folder: Path) -> None:
        """Say what this is and where to look."""
        self.say("Three years of uptime checks are replayed; a worker mirrors them into a local stand-in for Slack.")
        self.say("")
        self.say(f"  Board      {url}/channels/{STATUS}   one message, edited in place")
        self.say(f"  Notices    {url}/channels/{ALERTS}   one post for each turn to down")
        self.say(f"  Dashboard  {dashboard}   token: {token}")
        self.say(f"  Log        {folder / 'worker.log'}")
        self.say("")

    def worker_started(self, pid: int) -> None:
        """Say which process to kill, and that killed ones are followed by another."""
        self.workers.append(pid)
        if len(self.workers) > 1:
            self.say(f"Worker {self.workers[-2]} was killed; worker {pid} takes over. Again: kill -9 {pid}")
            return
        promise = "nothing is lost" if not self.lookup else "nothing doubles, nothing is lost"
        self.say(f"Kill the worker as often as you like, from another terminal: kill -9 {pid} ({promise}).")
        self.say("Ctrl-C stops everything and removes what it has made.")

    async def board_shown(self, runtime: SystemRuntime) -> None:
        """Wait for the board's first post, and say how long it took."""
        began = runtime.clock.boot_ms()
        await self.log.until(lambda log: bool(log.posts(STATUS)))
        self.say(f"The board is up, after {(runtime.clock.boot_ms() - began) / 1000:.1f} s.")

    def goodbye(self) -> None:
        """Say what was posted and edited, and what was posted twice."""
        notices = len(self.log.posts(ALERTS))
        twice = sum(posts[0].channel == ALERTS for posts in self.log.duplicates("delivery").values())
        board, edits = len(self.log.posts(STATUS)), len(self.log.edits(STATUS))
        self.say(f"Stopped, {max(0, len(self.workers) - 1)} kills of the worker. The stand-in's own log has counted:")
        self.say(f"  Board      {board} posted, {edits} edits")
        self.say(f"  Notices    {notices} posted, {twice or 'none'} of them twice")


async def _until_stopped(
    stop: asyncio.Event, supervisor: Supervisor, replay: Coroutine[None, None, None], teller: Teller
) -> None:
    """Keep everything going until somebody stops it, or a part of it breaks."""
    parts = [asyncio.create_task(supervisor.run()), asyncio.create_task(replay)]
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({stopped, *parts}, return_when=asyncio.FIRST_COMPLETED)
    broken = [part for part in parts if part.done()]
    if not broken:
        teller.say("Stopping: the worker ends what it has begun.")
    await supervisor.stop()
    for part in (stopped, *parts):
        part.cancel()
    await asyncio.gather(stopped, *parts, return_exceptions=True)
    for part in broken:
        part.result()


async def _replay_for_ever(folder: Path, speed: float, runtime: SystemRuntime) -> None:
    """Add recorded checks a few a second; at the end of the recording, begin again with later times."""
    source, checks = Source(str(folder / "checks.db")), read_checks()
    first, last = int(checks[0]["checked_at_ms"]), int(checks[-1]["checked_at_ms"])
    shift = 0
    while True:
        for start in range(0, len(checks), CHUNK):
            part = checks[start : start + CHUNK]
            await source.add([{**check, "checked_at_ms": str(int(check["checked_at_ms"]) + shift)} for check in part])
            await runtime.clock.sleep(0.5 / speed)
        shift += last - first + 60_000


@asynccontextmanager
async def _serving(sandbox: Sandbox) -> AsyncIterator[str]:
    """Serve at the preferred port, or at any when another demo is there already."""
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(sandbox.serving(port=SANDBOX_PORT))
        except ConfigurationError:
            url = await stack.enter_async_context(sandbox.serving())
        yield url


def _free_port(preferred: int) -> int:
    """Return the preferred port, or one that is free when it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a port of late is free again
        with suppress(OSError):
            probe.bind(("127.0.0.1", preferred))
            return preferred
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
