"""The whole recording replayed unattended while the worker is killed and the sandbox misbehaves, then counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Final

from kizami.app.app import Kizami
from kizami.core.timing import count_between
from kizami.demo.mirror import ALERTS, APP, SCHEDULE, STATUS, database_url
from kizami.demo.source import Source
from kizami.demo.supervisor import PHASES, SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks, turns_down
from kizami.demo.verdict import Verdict
from kizami.runtime import SystemRuntime
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.hooks import Call, Hook, Phase
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from kizami.store.protocol import FireOutcome, TickKind

TIME_SCALE: Final = 20.0
"""A rate window of a minute passes in three seconds."""
LIMIT_SECONDS: Final = 280.0
"""A run that takes longer fails by that name; a smaller one has as long."""
ROUNDS_FULL: Final = 10
EVERY: Final = timedelta(seconds=1)
HEAD_START: Final = 4
SHARE_UNDER_KILLS: Final = 0.7
CALM_STEPS_A_ROUND: Final = 8

CHANCES: Final = (
    (0.04, Fault.rate_limited(20)),
    (0.03, Fault.server_error(503)),
    (0.02, Fault.server_error(500, accepted=True)),
    (0.05, Fault.answer_lost()),
    (0.03, Fault.never_accepted(reset=True)),
    (0.02, Fault.accepted_late(8)),
    (0.01, Fault.hang(40)),
)
ACCEPTED_AS_ERROR: Final = Fault.server_error(accepted=True).name
"""A post that is accepted, but answered as if it might not be: its answer is as good as lost."""
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
            supervisor = _supervisor(folder, url, plan, lookup=lookup)
            sandbox.hooks.add(Phase.RECEIVED, supervisor.at_received, method="chat.postMessage", channel=ALERTS)
            sandbox.hooks.add(Phase.ACCEPTED, supervisor.at_accepted, method="chat.postMessage", channel=ALERTS)
            edited = asyncio.Event()
            sandbox.hooks.add(Phase.ACCEPTED, _noting(edited), method="chat.update", channel=STATUS)
            replay = _replay(Source(str(folder / "checks.db")), checks, plan, edited)
            in_time = await _run_to_the_end(supervisor, sandbox, replay, checks, runtime)
            await sandbox.settle_late()
            ticks = await _count_ticks(folder)
        seconds = (runtime.clock.boot_ms() - began) / 1000
        return _judge(sandbox, checks, ticks, plan, seconds, in_time=in_time)


def _noting(edited: asyncio.Event) -> Hook:
    async def note(call: Call) -> None:
        del call
        edited.set()

    return note


def _supervisor(folder: Path, url: str, plan: KillPlan, *, lookup: bool) -> Supervisor:
    arguments = [str(folder), "--every", str(EVERY // timedelta(milliseconds=1)), "--phases"]
    environment = {"SLACK_API_URL": f"{url}/api/", "SLACK_BOT_TOKEN": SANDBOX_TOKEN}
    return Supervisor(arguments if lookup else [*arguments, "--no-lookup"], environment, folder / "worker.log", plan)


async def _run_to_the_end(
    supervisor: Supervisor,
    sandbox: Sandbox,
    replay: Coroutine[None, None, None],
    checks: list[dict[str, str]],
    runtime: SystemRuntime,
) -> bool:
    """Go on until everything is killed, replayed, delivered and shown; False when the time limit came first."""
    due = frozenset(turns_down(checks))
    running, replaying = asyncio.create_task(supervisor.run()), asyncio.create_task(replay)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            for task in (running, replaying):
                if task.done():
                    task.result()  # what broke there is this run's failure
            await runtime.clock.sleep(0.2)

    limit = asyncio.timeout(LIMIT_SECONDS)
    try:
        async with limit:
            await until(lambda: not supervisor.plan.phases and replaying.done() and due <= _delivered(sandbox).keys())
            settled = len(sandbox.log.edits(STATUS)) + 2
            await until(lambda: len(sandbox.log.edits(STATUS)) >= settled)
    except TimeoutError:
        if not limit.expired():
            raise
    finally:
        replaying.cancel()
        await supervisor.stop()
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
    size = -(-len(calm) // (CALM_STEPS_A_ROUND * plan.total // len(PHASES)))
    for start in range(0, len(calm), size):
        await source.add(calm[start : start + size])
        edited.clear()
        await edited.wait()


async def _count_ticks(folder: Path) -> Counter[str]:
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
    counts["planned"] = count_between(schedule.known_timing, schedule.anchor_at, last, schedule.anchor_at)
    return counts


def _delivered(sandbox: Sandbox) -> Counter[str]:
    """Return how often each notice was posted, by its item."""
    return Counter(str(entry.delivery["delivery"]).rsplit("/", 1)[-1] for entry in sandbox.log.posts(ALERTS))


def _unmarked(sandbox: Sandbox, plan: KillPlan) -> int:
    """Return how many acceptances a lost answer or a kill parted from their marker, late ones left out."""
    lost = {
        entry.seq
        for entry in sandbox.log.posts(ALERTS)
        if not entry.late and (entry.fault == ACCEPTED_AS_ERROR or not entry.answered)
    }
    killed = {kill.acceptance for kill in plan.kills if kill.phase == "accepted"}
    return len(lost | killed) + plan.by_phase["answered"]


def _judge(
    sandbox: Sandbox,
    checks: list[dict[str, str]],
    ticks: Counter[str],
    plan: KillPlan,
    seconds: float,
    *,
    in_time: bool,
) -> Verdict:
    due = turns_down(checks)
    delivered = _delivered(sandbox)
    doubled = [posts for posts in sandbox.log.duplicates("delivery").values() if posts[0].channel == ALERTS]
    late = sum(min(sum(post.late for post in posts), len(posts) - 1) for posts in doubled)
    return Verdict(
        checks=len(checks),
        ticks_planned=ticks["planned"],
        ticks_fired=ticks[FireOutcome.FIRED],
        ticks_skipped=ticks[FireOutcome.SKIPPED_OVERLAP] + ticks[FireOutcome.SKIPPED_LEASE],
        ticks_missed=ticks[FireOutcome.MISSED],
        ticks_failed=ticks[FireOutcome.FAILED],
        board_posts=len(sandbox.log.posts(STATUS)),
        board_edits=len(sandbox.log.edits(STATUS)),
        notices_due=len(due),
        notices_delivered=len(delivered),
        duplicated=sum(delivered.values()) - len(delivered) - late,
        duplicated_late=late,
        late_acceptances=sum(entry.late for entry in sandbox.log.posts(ALERTS)),
        acceptances_unmarked=_unmarked(sandbox, plan),
        lost=len(set(due) - delivered.keys()),
        kills=len(plan.kills),
        kills_by_phase=plan.by_phase,
        seconds=round(seconds, 1),
        ended_in_time=in_time,
    )
