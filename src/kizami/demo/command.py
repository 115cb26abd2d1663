"""`kizami demo`: everything on one machine, for a person to watch, or unattended with a verdict."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from pathlib import Path

import typer

from kizami.demo.mirror import ALERTS, STATUS
from kizami.demo.source import Source
from kizami.demo.supervisor import SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks
from kizami.demo.verify import ROUNDS_FULL, Verdict, verify
from kizami.runtime import SystemRuntime
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings

CHUNK = 4
SANDBOX_PORT = 8_780
DASHBOARD_PORT = 8_787


def demo(
    *,
    check: bool = typer.Option(
        False, "--verify", help="Replay everything unattended with kills and faults; print a verdict."
    ),
    seed: int = typer.Option(1, help="With --verify: the seed of the kills and faults."),
    lookup: bool = typer.Option(
        True, "--lookup/--no-lookup", help="Look for a post of unknown fate before repeating it."
    ),
    rounds: int = typer.Option(ROUNDS_FULL, min=1, help="With --verify: kills in each of the five phases."),
    speed: float = typer.Option(1.0, min=0.1, max=100.0, help="How fast the recorded checks are replayed."),
) -> None:
    """Show a board and notices in a local Slack stand-in, fed with real uptime checks. Needs no Slack token."""
    if check:
        verdict = asyncio.run(verify(seed, lookup=lookup, rounds=rounds))
        typer.echo(json.dumps(verdict.as_json()))
        raise typer.Exit(0 if is_good(verdict, lookup=lookup) else 1)
    asyncio.run(_show(speed, lookup=lookup))


def is_good(verdict: Verdict, *, lookup: bool) -> bool:
    """Tell whether a verdict holds what the demo promises."""
    ticks = verdict.ticks_fired + verdict.ticks_skipped + verdict.ticks_missed + verdict.ticks_failed
    doubled = verdict.duplicated == 0 if lookup else verdict.duplicated >= 1
    whole = verdict.lost == 0 and verdict.notices_due == verdict.notices_delivered
    return whole and doubled and verdict.board_posts == 1 and ticks == verdict.ticks_planned


async def _show(speed: float, *, lookup: bool) -> None:
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
            tasks = [
                asyncio.create_task(supervisor.run()),
                asyncio.create_task(_replay_for_ever(folder, speed, runtime)),
            ]
            _tell(url, token, folder)
            done, _ = await asyncio.wait(
                [asyncio.ensure_future(stop.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED
            )
            await supervisor.stop()
            for task in tasks:
                task.cancel()
            for task in done:
                task.result()


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


def _tell(url: str, token: str, folder: Path) -> None:
    typer.echo(f"Board      {url}/channels/{STATUS}")
    typer.echo(f"Notices    {url}/channels/{ALERTS}")
    typer.echo(f"Dashboard  http://127.0.0.1:{DASHBOARD_PORT}/   (token: {token})")
    typer.echo(f"Logs       {folder / 'worker.log'}")
    typer.echo("Kill the worker whenever you like (pkill -9 -f kizami.demo.worker): nothing doubles, nothing is lost.")
    typer.echo("Stop with Ctrl-C.")
