"""The whole recording replayed unattended while the worker is killed and the sandbox misbehaves, then counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from kizami.app.app import Kizami
from kizami.demo.judge import EVERY, Span, Ticks, delivered_items, judge
from kizami.demo.mirror import ALERTS, APP, SCHEDULE, STATUS, database_url
from kizami.demo.source import Source
from kizami.demo.supervisor import BOARD, SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks, turns_down
from kizami.demo.verdict import Verdict
from kizami.runtime import SystemRuntime
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.hooks import Call, Hook, Phase
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from kizami.store.protocol import TickKind

TIME_SCALE: Final = 20.0
"""A rate window of a minute passes in three seconds."""
LIMIT_SECONDS: Final = 280.0
"""A run that takes longer fails by that name; a smaller one has as long."""
ROUNDS_FULL: Final = 10
HEAD_START: Final = 4
SHARE_UNDER_KILLS: Final = 0.7
CALM_STEPS_A_ROUND: Final = 6.5
"""Each takes a tick; a full run has as many as its edits of the board ask for."""
EDITS_AFTER: Final = 3
"""Edits after the end of the replay: the last comes from a tick that was planned after it."""
SETTLE_MS: Final = 5_000
"""When a run is cut off, its last ticks may still be open."""
BOARD_CLEAN: Final = 4
"""Calls for the board's first post that meet no fault: one would forestall the kill that is planned there."""

CHANCES: Final = (
    (0.04, Fault.rate_limited(20)),
    (0.03, Fault.server_error(503)),
    (0.02, Fault.server_error(500, accepted=True)),
    (0.05, Fault.answer_lost()),
    (0.03, Fault.never_accepted(reset=True)),
    (0.02, Fault.accepted_late(8)),
    (0.01, Fault.hang(40)),
)
MISBEHAVING: Final = frozenset({"chat.postMessage", "chat.update", "conversations.history"})


async def verify(seed: int, *, lookup: bool = True, rounds: int = ROUNDS_FULL) -> Verdict:
    """Replay everything once, with `rounds` kills in each phase; what is not reached in time, the verdict says."""
    runtime = SystemRuntime()
    began = runtime.clock.boot_ms()
    checks = read_checks()
    settings = SandboxSettings(time_scale=TIME_SCALE)
    sandbox = Sandbox(settings, runtime)
    sandbox.faults.mix = FaultMix(seed, CHANCES, MISBEHAVING)
    with tempfile.TemporaryDirectory(prefix="kizami-verify-") as name:
        folder = Path(name)
        async with sandbox.serving() as url:
            plan = KillPlan.drawn(seed, rounds)
            span = Span(runtime.clock)
            supervisor = _supervisor(folder, url, plan, span, lookup=lookup)
            _place_hooks(sandbox, supervisor)
            edited = asyncio.Event()
            sandbox.hooks.add(Phase.ACCEPTED, _noting(edited), method="chat.update", channel=STATUS)
            replay = _replay(Source(str(folder / "checks.db")), checks, plan, edited)
            in_time = await _run_to_the_end(supervisor, sandbox, replay, checks, span)
            await sandbox.settle_late()
            ticks = await _count_ticks(folder, span)
        seconds = (runtime.clock.boot_ms() - began) / 1000
        return judge(sandbox.log, checks, ticks, plan, seconds, in_time=in_time)


def _place_hooks(sandbox: Sandbox, supervisor: Supervisor) -> None:
    for channel, prefix in ((ALERTS, ""), (STATUS, BOARD)):
        received, accepted = (
            partial(supervisor.at_received, prefix=prefix),
            partial(supervisor.at_accepted, prefix=prefix),
        )
        sandbox.hooks.add(Phase.RECEIVED, received, method="chat.postMessage", channel=channel)
        sandbox.hooks.add(Phase.ACCEPTED, accepted, method="chat.postMessage", channel=channel)
    sandbox.faults.fail_next("chat.postMessage", *[Fault.slow(0)] * BOARD_CLEAN, channel=STATUS)


def _noting(edited: asyncio.Event) -> Hook:
    async def note(call: Call) -> None:
        del call
        edited.set()

    return note


def _supervisor(folder: Path, url: str, plan: KillPlan, span: Span, *, lookup: bool) -> Supervisor:
    arguments = [str(folder), "--every", str(EVERY // timedelta(milliseconds=1)), "--phases"]
    environment = {"SLACK_API_URL": f"{url}/api/", "SLACK_BOT_TOKEN": SANDBOX_TOKEN}
    arguments += [] if lookup else ["--no-lookup"]
    return Supervisor(arguments, environment, folder / "worker.log", plan, span.begin)


async def _run_to_the_end(
    supervisor: Supervisor,
    sandbox: Sandbox,
    replay: Coroutine[None, None, None],
    checks: list[dict[str, str]],
    span: Span,
) -> bool:
    """Go on until everything is killed, replayed, delivered and shown; False when the time limit came first."""
    due, plan = frozenset(turns_down(checks)), supervisor.plan
    running, replaying = asyncio.create_task(supervisor.run()), asyncio.create_task(replay)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            for task in (running, replaying):
                if task.done():
                    task.result()  # what broke there is this run's failure
            await span.clock.sleep(0.2)

    limit = asyncio.timeout(LIMIT_SECONDS)
    try:
        async with limit:
            await until(lambda: not plan.phases and replaying.done() and due <= delivered_items(sandbox.log).keys())
            span.ended = span.clock.now_ms()
            settled = len(sandbox.log.edits(STATUS)) + EDITS_AFTER
            await until(lambda: len(sandbox.log.edits(STATUS)) >= settled)
    except TimeoutError:
        if not limit.expired():
            raise
    finally:
        replaying.cancel()
        span.ended = span.ended or span.clock.now_ms() - SETTLE_MS
        await supervisor.stop()
        span.stopped = span.clock.now_ms()
        await asyncio.gather(running, replaying, return_exceptions=True)
    return not limit.expired()


async def _replay(source: Source, checks: list[dict[str, str]], plan: KillPlan, edited: asyncio.Event) -> None:
    """Add the checks in step with the kills, so that there is always something to be killed at, then with the edits."""
    under_kills, added = int(len(checks) * SHARE_UNDER_KILLS), 0
    while plan.phases:
        plan.changed.clear()
        until = min(under_kills, under_kills * (len(plan.kills) + HEAD_START) // plan.total)
        if until > added:
            await source.add(checks[added:until])
            added = until
        await plan.changed.wait()
    calm = checks[added:]
    size = -int(-len(calm) // (CALM_STEPS_A_ROUND * min(plan.by_phase.values())))
    for start in range(0, len(calm), size):
        await source.add(calm[start : start + size])
        edited.clear()
        await edited.wait()


async def _count_ticks(folder: Path, span: Span) -> Ticks:
    app = Kizami(APP, database_url=database_url(folder))
    await app.open()
    try:
        schedule = await app.schedules.get(SCHEDULE)
        ledger = await app.schedules.ledger(SCHEDULE, limit=1_000_000)
    finally:
        await app.close()
    counts: Counter[str] = Counter()
    for line in ledger:
        if line.kind is TickKind.PLANNED:
            counts[line.outcome] += line.count
    last = max((line.planned_last_at for line in ledger), default=schedule.anchor_at)
    return Ticks.counted(span, schedule.anchor_at, last, counts)
