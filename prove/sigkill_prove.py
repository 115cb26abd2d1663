"""Workers killed by SIGKILL at random moments lose no job, repeat no started at-most-once job and double no tick.

On both stores: four workers, 200 kills, 20,000 jobs. On PostgreSQL every fifth kill also ends three random connections,
and every fiftieth comes with a server that stops as at a loss of power and starts again.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kizami import JobFilter
from kizami.core.states import JobState
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.crash.postgres_chaos import Chaos  # noqa: E402 - a proof is run as a script, from anywhere
from tests.crash.processes import (  # noqa: E402 - as above
    Scene,
    all_ended,
    check_each_tick_once,
    kill_at_random,
    undisturbed,
    until,
)
from tests.crash.sigkill_app import Victim  # noqa: E402 - as above
from tests.own_postgres import own_postgres  # noqa: E402 - as above

KILLS = 200
JOBS = 10_000
WORKERS = 4
SPREAD_MS = 100_000
"""Over so long the jobs become due."""


def prove(seed: int) -> Mapping[str, object]:
    """Kill workers while jobs and ticks come, then let the rest end and count; on SQLite, then on PostgreSQL."""
    figures: dict[str, object] = {}
    with TemporaryDirectory() as folder, Scene(Path(folder)) as scene:
        figures |= _named("SQLite", asyncio.run(_prove(scene, seed, undisturbed)))
    with own_postgres() as server, TemporaryDirectory() as folder:
        migrate(place_of(server.url))
        chaos = Chaos(server, cut_every=5, restart_every=50)
        with Scene(Path(folder), postgres_url=server.url) as scene:
            figures |= _named("PostgreSQL", asyncio.run(_prove(scene, seed, chaos)))
        figures |= _named("PostgreSQL", {"connections ended": chaos.cuts, "hard restarts": chaos.restarts})
    return figures


def _named(store: str, figures: Mapping[str, object]) -> dict[str, object]:
    return {f"{store}: {name}": figure for name, figure in figures.items()}


async def _prove(scene: Scene, seed: int, disturb: Callable[[int, Random], None]) -> Mapping[str, object]:
    victim = scene.victim()
    async with victim.app.running(worker=False):
        delays = [timedelta(milliseconds=SPREAD_MS * number // JOBS) for number in range(JOBS)]
        again_ids = await victim.app.enqueue_many(victim.again.job(0.3, delay=delay) for delay in delays)
        once_ids = await victim.app.enqueue_many(victim.once.job(0.3, delay=delay) for delay in delays)
        await kill_at_random(scene, KILLS, seed, workers=WORKERS, disturb=disturb)
        await until(lambda: all_ended(victim), "every job ends", seconds=300)
        counts = await victim.app.jobs.count_by_state()
        stalled = await _stalled(victim)
        ledger = await victim.app.schedules.ledger("second", limit=100_000)
    starts = Counter(words[1] for words in scene.lines("once"))
    once = counts["once"]
    assert counts["again"] == {JobState.COMPLETED: JOBS}, f"at-least-once jobs: {counts['again']}"
    assert {words[1] for words in scene.lines("again")} == set(again_ids), "a COMPLETED job left no line"
    assert max(starts.values()) == 1, "an at-most-once job started twice"
    assert set(once_ids) - stalled <= set(starts), "a COMPLETED at-most-once job left no line"
    assert once.get(JobState.COMPLETED, 0) + once.get(JobState.STALLED, 0) == JOBS, f"at-most-once jobs: {once}"
    return {
        "kills": KILLS,
        "at-least-once jobs, all COMPLETED": JOBS,
        "their starts": len(scene.lines("again")),
        "at-most-once jobs COMPLETED": once.get(JobState.COMPLETED, 0),
        "at-most-once jobs STALLED": once.get(JobState.STALLED, 0),
        "ticks accounted for, each once": check_each_tick_once(scene, ledger),
    }


async def _stalled(victim: Victim) -> set[str]:
    """Return the ids of the at-most-once jobs that are STALLED."""
    found: set[str] = set()
    wanted = JobFilter(states=(JobState.STALLED,), binding="once", limit=200)
    while True:
        page = await victim.app.jobs.list(wanted)
        found.update(job.job_id for job in page.jobs)
        if page.next_cursor is None:
            return found
        wanted = replace(wanted, before=page.next_cursor)
