"""Real processes, real signals: what a worker that ends at any instruction leaves behind is taken over, once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.core.errors import LeaseHeldError
from kizami.core.states import JobState
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.protocol import FireOutcome, Job
from tests.crash.postgres_chaos import Chaos
from tests.crash.processes import Scene, all_ended, check_each_tick_once, freeze, kill_at_random, until
from tests.crash.sigkill_app import Victim
from tests.own_postgres import own_postgres

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


async def job_of(victim: Victim, job_id: str) -> Job:
    job = await victim.app.jobs.get(job_id)
    assert job is not None
    return job


async def check_kills(scene: Scene, kills: int, **how: Any) -> None:
    """Kill workers while jobs of both kinds come due, then let the rest end and count."""
    victim = scene.victim()
    async with victim.app.running(worker=False):
        once = await enqueue_over(victim, jobs=1_000, seconds=10)
        await kill_at_random(scene, kills, seed=1, **how)
        await until(lambda: all_ended(victim), "every job ends")
        counts = await victim.app.jobs.count_by_state()
        states = {job_id: (await job_of(victim, job_id)).state for job_id in once}
        ledger = await victim.app.schedules.ledger("second", limit=1_000)
    assert counts["again"] == {JobState.COMPLETED: 1_000}
    starts = Counter(words[1] for words in scene.lines("once"))
    assert set(states.values()) == {JobState.COMPLETED, JobState.STALLED}
    assert max(starts.values()) == 1
    assert [job_id for job_id, state in states.items() if state is JobState.COMPLETED and starts[job_id] != 1] == []
    assert check_each_tick_once(scene, ledger) >= 10


async def test_twenty_kills_lose_no_job_repeat_no_at_most_once_job_and_double_no_tick(tmp_path: Path) -> None:
    with Scene(tmp_path) as scene:
        await check_kills(scene, 20)


async def test_nor_do_they_on_a_postgresql_that_loses_connections_and_power(tmp_path: Path) -> None:
    with own_postgres() as server:
        migrate(place_of(server.url))
        chaos = Chaos(server, cut_every=4, restart_every=15)
        with Scene(tmp_path, postgres_url=server.url) as scene:
            await check_kills(scene, 20, workers=3, disturb=chaos)
    assert (chaos.restarts, chaos.cuts > 0) == (1, True)


async def enqueue_over(victim: Victim, jobs: int, seconds: float) -> Sequence[str]:
    """Enqueue jobs of both kinds that become due over a time; return the ids of the at-most-once ones."""
    delays = [timedelta(milliseconds=round(1000 * seconds * number / jobs)) for number in range(jobs)]
    await victim.app.enqueue_many(victim.again.job(0.3, delay=delay) for delay in delays)
    return await victim.app.enqueue_many(victim.once.job(0.3, delay=delay) for delay in delays)


async def test_a_second_process_takes_over_within_two_seconds(tmp_path: Path) -> None:
    with Scene(tmp_path) as scene:
        victim = scene.victim()
        async with victim.app.running(worker=False):
            first = scene.start()
            again, once = await victim.again.enqueue(60.0), await victim.once.enqueue(60.0)
            await until(lambda: lines(scene, 2), "both jobs start")
            scene.start()
            scene.kill(first)

            async def taken_over() -> bool:
                stalled = (await job_of(victim, once)).state is JobState.STALLED
                return stalled and [words[1] for words in scene.lines("again")] == [again, again]

            assert await until(taken_over, "the other process takes over", seconds=10) < 2
    assert len(scene.lines("once")) == 1


async def lines(scene: Scene, count: int) -> bool:
    return len(scene.lines("again") + scene.lines("once")) >= count


async def test_a_frozen_lease_holder_stops_before_its_next_effect_when_it_wakes_up(tmp_path: Path) -> None:
    with Scene(tmp_path) as scene:
        victim = scene.victim()
        async with victim.app.running(worker=False):
            frozen = scene.start()
            first = (await victim.app.schedules.trigger("hold")).job_id
            assert first is not None
            await until(lambda: effects_of(scene, first, 3), "the holder has effects")
            with pytest.raises(LeaseHeldError):
                await victim.app.schedules.trigger("hold")
            freeze(frozen, scene.database)
            scene.start()
            second = await trigger_when_free(victim)
            await until(lambda: effects_of(scene, second, 3), "the new holder has effects")
            frozen.send_signal(signal.SIGCONT)

            async def stopped() -> bool:
                return (await job_of(victim, first)).state is JobState.COMPLETED

            await until(stopped, "the old holder notices")
            assert (await job_of(victim, first)).result == '"lease_lost"'
    order = [words[1] for words in scene.lines("hold")]
    assert first not in order[order.index(second) :]


async def effects_of(scene: Scene, job_id: str, count: int) -> bool:
    return sum(words[1] == job_id for words in scene.lines("hold")) >= count


async def trigger_when_free(victim: Victim) -> str:
    fired: list[str] = []

    async def free() -> bool:
        try:
            record = await victim.app.schedules.trigger("hold")
        except LeaseHeldError:
            return False
        assert record.job_id is not None
        fired.append(record.job_id)
        return True

    await until(free, "the lease of the frozen process goes stale")
    return fired[0]


async def test_a_stepped_system_clock_doubles_no_tick(tmp_path: Path) -> None:
    """B026 on a real process: an hour back and then a day forward, by a clock library under the interpreter."""
    assert LIBRARY is not None, "libfaketime is not installed: apt-get install faketime"
    offset = tmp_path / "offset"
    offset.write_text("+0", encoding="utf-8")
    environment = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    with Scene(tmp_path, environment) as scene:
        victim = scene.victim()
        async with victim.app.running(worker=False):
            scene.start()
            await until(lambda: ticks(scene, 2), "ticks come")
            offset.write_text("-3600", encoding="utf-8")
            job_id = await victim.again.enqueue(1.5)

            async def job_done() -> bool:
                return (await job_of(victim, job_id)).state is JobState.COMPLETED

            await until(job_done, "jobs go on after the step back")
            before = scene.lines("tick")
            offset.write_text("+86400", encoding="utf-8")
            await until(lambda: ticks(scene, len(before) + 3), "ticks go on after the step forward")
            ledger = await victim.app.schedules.ledger("second", limit=1_000)
    done = [int(words[1]) for words in scene.lines("tick")]
    assert len(done) == len(set(done))
    missed = [line for line in ledger if line.outcome is FireOutcome.MISSED and line.count > 80_000]
    assert len(missed) == 1
    assert done[-1] > datetime.now(UTC).timestamp() * 1000 + 80_000_000
    check_each_tick_once(scene, ledger)
    assert len(scene.lines("again")) == 1


async def ticks(scene: Scene, count: int) -> bool:
    return len(scene.lines("tick")) >= count
