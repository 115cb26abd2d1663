"""Workers killed by SIGKILL at random moments lose no job, repeat no started at-most-once job and double no tick."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from kizami.core.states import JobState

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.crash.processes import (  # noqa: E402 - a proof is run as a script, from anywhere
    Scene,
    all_ended,
    check_each_tick_once,
    kill_at_random,
    until,
)

KILLS = 200
JOBS = 10_000


def prove(seed: int) -> Mapping[str, object]:
    """Kill workers of one SQLite file while jobs and ticks come, then let the rest end and count."""
    with TemporaryDirectory() as folder, Scene(Path(folder)) as scene:
        return asyncio.run(_prove(scene, seed))


async def _prove(scene: Scene, seed: int) -> Mapping[str, object]:
    victim = scene.victim()
    async with victim.app.running(worker=False):
        delays = [timedelta(milliseconds=100_000 * number // JOBS) for number in range(JOBS)]
        await victim.app.enqueue_many(victim.again.job(0.3, delay=delay) for delay in delays)
        await victim.app.enqueue_many(victim.once.job(0.3, delay=delay) for delay in delays)
        await kill_at_random(scene, KILLS, seed)
        await until(lambda: all_ended(victim), "every job ends", seconds=300)
        counts = await victim.app.jobs.count_by_state()
        ledger = await victim.app.schedules.ledger("second", limit=100_000)
    starts = Counter(words[1] for words in scene.lines("once"))
    once = counts["once"]
    assert counts["again"] == {JobState.COMPLETED: JOBS}, f"at-least-once jobs: {counts['again']}"
    assert max(starts.values()) == 1, "an at-most-once job started twice"
    assert once.get(JobState.COMPLETED, 0) + once.get(JobState.STALLED, 0) == JOBS, f"at-most-once jobs: {once}"
    return {
        "kills": KILLS,
        "at-least-once jobs, all COMPLETED": JOBS,
        "their starts": len(scene.lines("again")),
        "at-most-once jobs COMPLETED": once.get(JobState.COMPLETED, 0),
        "at-most-once jobs STALLED": once.get(JobState.STALLED, 0),
        "ticks accounted for, each once": check_each_tick_once(scene, ledger),
    }
