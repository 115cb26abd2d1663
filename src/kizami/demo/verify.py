"""The whole recording replayed unattended while the worker is killed and the sandbox misbehaves, then counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from kizami.app.app import Kizami
from kizami.core.timing import count_between
from kizami.demo.mirror import ALERTS, APP, SCHEDULE, STATUS, database_url
from kizami.demo.source import Source
from kizami.demo.supervisor import PHASES, SANDBOX_TOKEN, KillPlan, Supervisor
from kizami.demo.truth import read_checks, turns_down
from kizami.runtime import SystemRuntime
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.hooks import Call, Hook, Phase
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from kizami.store.protocol import FireOutcome, TickKind

TIME_SCALE: Final = 20.0
"""A rate window of a minute passes in three seconds."""
LIMIT_SECONDS: Final = 280.0
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
MISBEHAVING: Final = frozenset({"chat.postMessage", "chat.update", "conversations.history"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the run showed. Due is counted from the recording, delivered and doubled from the sandbox's own log."""

    checks: int
    ticks_planned: int
    ticks_fired: int
    ticks_skipped: int
    ticks_missed: int
    ticks_failed: int
    board_posts: int
    board_edits: int
    notices_due: int
    notices_delivered: int
    duplicated: int
    duplicated_late: int
    lost: int
    kills: int
    kills_by_phase: dict[str, int]
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Return the verdict under the names that it is printed with."""
        return asdict(self)

    def holds(self, *, lookup: bool) -> bool:
        """Tell whether the run showed what the demo promises; without look-up, a lost answer may double a post."""
        ticks = self.ticks_fired + self.ticks_skipped + self.ticks_missed + self.ticks_failed
        doubled = self.duplicated == 0 if lookup else self.duplicated >= 1
        whole = self.lost == 0 and self.notices_due == self.notices_delivered
        return whole and doubled and self.board_posts == 1 and ticks == self.ticks_planned


async def verify(seed: int, *, lookup: bool = True, rounds: int = ROUNDS_FULL) -> Verdict:
    """Replay everything once. Takes under 300 s with the full number of kills."""
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
            await _run_to_the_end(supervisor, sandbox, replay, checks, runtime)
            ticks = await _count_ticks(folder)
        seconds = (runtime.clock.boot_ms() - began) / 1000
        return _judge(sandbox, checks, ticks, plan, seconds)


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
) -> None:
    due = frozenset(turns_down(checks))
    running = asyncio.create_task(supervisor.run())
    replaying = asyncio.create_task(replay)
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not (replaying.done() and due <= _delivered(sandbox).keys() and not supervisor.plan.phases):
                for task in (running, replaying):
                    if task.done() and (task is running or task.exception() is not None):
                        task.result()
                await runtime.clock.sleep(0.2)
            settled = len(sandbox.log.edits(STATUS)) + 2
            while len(sandbox.log.edits(STATUS)) < settled:
                await runtime.clock.sleep(0.2)
    except TimeoutError:
        pass  # the verdict says what was not reached
    finally:
        replaying.cancel()
        await supervisor.stop()
        await asyncio.gather(running, replaying, return_exceptions=True)


async def _replay(source: Source, checks: list[dict[str, str]], plan: KillPlan, edited: asyncio.Event) -> None:
    """Add the checks in step with the kills, so that there is always something to be killed at, then with the edits."""
    under_kills, added = int(len(checks) * SHARE_UNDER_KILLS), 0
    while plan.phases:
        plan.changed.clear()
        until = min(under_kills, under_kills * (plan.done.total() + HEAD_START) // plan.total)
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
    last = max(line.planned_last_at for line in ledger)
    counts["planned"] = count_between(schedule.timing, schedule.anchor_at, last, schedule.anchor_at)
    return counts


def _delivered(sandbox: Sandbox) -> Counter[str]:
    """Return how often each notice was posted, by its item."""
    return Counter(str(entry.delivery["delivery"]).rsplit("/", 1)[-1] for entry in sandbox.log.posts(ALERTS))


def _judge(
    sandbox: Sandbox, checks: list[dict[str, str]], ticks: Counter[str], plan: KillPlan, seconds: float
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
        lost=len(set(due) - delivered.keys()),
        kills=plan.done.total(),
        kills_by_phase={phase: plan.done[phase] for phase in PHASES},
        seconds=round(seconds, 1),
    )
