"""The demo for a person: a sandbox, a monitor and a worker that may be killed, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path

from kizami.demo.mirror import ALERTS, STATUS
from kizami.demo.source import Source
from kizami.demo.supervisor import SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks
from kizami.runtime import SystemRuntime
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings

CHUNK = 4
SANDBOX_PORT = 8_780
DASHBOARD_PORT = 8_787


async def show(speed: float, *, lookup: bool, say: Callable[[str], None]) -> None:
    """Run sandbox, monitor and worker until SIGTERM or SIGINT, and say where to look."""
    runtime = SystemRuntime()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token = os.environ.get("KIZAMI_TOKEN") or runtime.entropy.token()
    with tempfile.TemporaryDirectory(prefix="kizami-demo-") as name:
        folder = Path(name)
        sandbox = Sandbox(SandboxSettings(time_scale=10), runtime)
        async with sandbox.serving(port=SANDBOX_PORT) as url:
            arguments = [str(folder), "--port", str(DASHBOARD_PORT), *([] if lookup else ["--no-lookup"])]
            environment = {"SLACK_API_URL": f"{url}/api/", "SLACK_BOT_TOKEN": SANDBOX_TOKEN, "KIZAMI_TOKEN": token}
            supervisor = Supervisor(arguments, environment, folder / "worker.log", KillPlan([]))
            _tell(say, url, token, folder)
            await _until_stopped(stop, supervisor, _replay_for_ever(folder, speed, runtime))


async def _until_stopped(stop: asyncio.Event, supervisor: Supervisor, replay: Coroutine[None, None, None]) -> None:
    """Keep everything going until somebody stops it, or a part of it breaks."""
    parts = [asyncio.create_task(supervisor.run()), asyncio.create_task(replay)]
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({stopped, *parts}, return_when=asyncio.FIRST_COMPLETED)
    broken = [part for part in parts if part.done()]
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


def _tell(say: Callable[[str], None], url: str, token: str, folder: Path) -> None:
    say(f"Board      {url}/channels/{STATUS}")
    say(f"Notices    {url}/channels/{ALERTS}")
    say(f"Dashboard  http://127.0.0.1:{DASHBOARD_PORT}/   (token: {token})")
    say(f"Logs       {folder / 'worker.log'}")
    say("Kill the worker whenever you like (pkill -9 -f kizami.demo.worker): nothing doubles, nothing is lost.")
    say("Stop with Ctrl-C.")
