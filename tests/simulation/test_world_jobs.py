"""Jobs in virtual time: deadlines, retries, guarantees, leases, and what a failing store or a stop leaves behind."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kizami import Backoff, Cancel, JobContext, Kizami, LeaseSettings, Snooze, WorkerSettings
from kizami.core.errors import LeaseHeldError, StoreError
from kizami.core.states import JobState
from kizami.store.protocol import FireOutcome, Job, Outcome
from kizami.testing.world import World

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def job_of(world: World, job_id: str) -> Job:
    job = world.wait(world.app.jobs.get(job_id))
    assert job is not None
    return job


def test_a_silent_job_is_cut_off_at_its_timeout_and_retried_until_its_attempts_are_used_up() -> None:
    app = Kizami()
    starts: list[float] = []

    @app.performer(
        timeout=timedelta(seconds=10), max_attempts=3, backoff=Backoff(base=timedelta(seconds=2), jitter=False)
    )
    async def hang() -> None:
        starts.append(app.runtime.clock.boot_ms() / 1000)
        await app.runtime.clock.sleep(10_000)

    with World(app) as world:
        job_id = world.wait(hang.enqueue())
        world.run_for(timedelta(minutes=2))
        job = job_of(world, job_id)
    assert starts == [0.0, 12.0, 26.0]  # 10 s of trying, then 2 s and 4 s of waiting
    assert job.state is JobState.FAILED
    assert [attempt.outcome for attempt in job.attempts] == [Outcome.TIMED_OUT] * 3
    assert job.error == "timed out after 10000 ms"


def test_heartbeats_move_the_deadline_and_their_progress_is_kept() -> None:
    app = Kizami()

    @app.performer(timeout=timedelta(seconds=10), max_attempts=1)
    async def long(ctx: JobContext) -> str:
        deadlines = set()
        for step in range(10):
            await app.runtime.clock.sleep(8)
            ctx.heartbeat(step / 10)
            deadlines.add(ctx.deadline)
        return f"{len(deadlines)} deadlines"

    with World(app, settings=app.settings) as world:
        job_id = world.wait(long.enqueue())
        world.run_for(timedelta(seconds=70))
        assert job_of(world, job_id).progress == 0.7
        world.run_for(timedelta(seconds=15))
        job = job_of(world, job_id)
    assert (job.state, job.result) == (JobState.COMPLETED, '"10 deadlines"')


def test_a_snooze_uses_no_attempt_and_a_cancel_ends_the_job() -> None:
    app = Kizami()
    calls: list[int] = []

    @app.performer(max_attempts=1)
    async def patient(ctx: JobContext) -> Snooze | Cancel:
        calls.append(ctx.attempt)
        return Snooze(timedelta(minutes=1)) if len(calls) < 4 else Cancel("enough")

    with World(app) as world:
        job_id = world.wait(patient.enqueue())
        world.run_for(timedelta(minutes=4))
        job = job_of(world, job_id)
    assert calls == [1, 1, 1, 1]
    assert (job.state, job.error) == (JobState.CANCELLED, "enough")
    assert [a.outcome for a in job.attempts] == [Outcome.SNOOZED] * 3 + [Outcome.CANCELLED]


def test_at_most_once_retries_a_reported_failure_but_nothing_after_a_forced_stop() -> None:
    app = Kizami(settings=WorkerSettings(stop_ms=1_000))
    calls: list[str] = []

    @app.performer(guarantee="at-most-once", max_attempts=2, backoff=Backoff.fixed(timedelta(seconds=1)))
    async def once(payload: str) -> None:
        calls.append(payload)
        if payload == "fails":
            raise ValueError(payload)
        await app.runtime.clock.sleep(50)

    with World(app) as world:
        fails, hangs = world.wait(once.enqueue("fails")), world.wait(once.enqueue("hangs"))
        world.run_for(timedelta(seconds=5))
        assert calls.count("fails") == 2
        assert job_of(world, fails).state is JobState.FAILED
        world.stop(app)
        assert job_of(world, hangs).state is JobState.STALLED
        world.start(app)
        world.run_for(timedelta(minutes=5))
    assert calls.count("hangs") == 1


def test_a_graceful_stop_waits_for_what_ends_in_time_and_hands_back_the_rest_without_an_attempt() -> None:
    app = Kizami(settings=WorkerSettings(stop_ms=10_000))

    @app.performer(timeout=timedelta(minutes=5), max_attempts=1)
    async def work(payload: int) -> int:
        await app.runtime.clock.sleep(payload)
        return payload

    with World(app) as world:
        short, long = world.wait(work.enqueue(5)), world.wait(work.enqueue(100))
        world.run_for(timedelta(seconds=1))
        world.stop(app)
        assert world.clock.boot_ms() == 11_000
        assert job_of(world, short).state is JobState.COMPLETED
        handed_back = job_of(world, long)
        assert (handed_back.state, handed_back.attempt) == (JobState.SCHEDULED, 0)
        world.start(app)
        world.run_for(timedelta(seconds=101))
        assert job_of(world, long).state is JobState.COMPLETED


def test_tasks_that_a_performer_leaves_running_end_before_its_report(caplog: pytest.LogCaptureFixture) -> None:
    app = Kizami()
    ends: list[str] = []
    left: list[asyncio.Task[None]] = []

    @app.performer
    async def careless() -> str:
        async def linger() -> None:
            try:
                await app.runtime.clock.sleep(1_000)
            finally:
                ends.append("lingering task")

        left.append(asyncio.create_task(linger()))
        await app.runtime.clock.sleep(1)
        return "done"

    with World(app) as world, caplog.at_level(logging.WARNING, "kizami.job"):
        job_id = world.wait(careless.enqueue())
        world.run_for(timedelta(seconds=2))
        assert ends == ["lingering task"]
        assert job_of(world, job_id).result == '"done"'
    assert "left 1 tasks running" in caplog.text


def sharing_a_lease() -> tuple[Kizami, list[str]]:
    app = Kizami(settings=WorkerSettings(lease=LeaseSettings(beat_ms=10_000, stale_ms=60_000)))
    effects: list[str] = []

    @app.performer(timeout=timedelta(minutes=10))
    async def mirror(payload: str, ctx: JobContext) -> None:
        for _ in range(6):
            await ctx.require_lease()
            effects.append(payload)
            await app.runtime.clock.sleep(30)

    app.schedule("first", mirror, payload="first", cron="0 12 * * *", lease="mirror")
    app.schedule("second", mirror, payload="second", cron="1 12 * * *", lease="mirror")
    return app, effects


def test_a_tick_that_finds_its_lease_held_completes_without_an_effect() -> None:
    app, effects = sharing_a_lease()
    with World(app, start=NOON - timedelta(seconds=1), settings=app.settings) as world:
        world.run_for(timedelta(minutes=2))
        (second,) = world.wait(app.schedules.ledger("second"))
        assert second.outcome is FireOutcome.SKIPPED_LEASE
        assert second.job_id is not None
        skipped = job_of(world, second.job_id)
        assert (skipped.state, skipped.result) == (JobState.COMPLETED, '"lease_held"')
        with pytest.raises(LeaseHeldError) as refused:
            world.wait(app.schedules.trigger("second"))
        assert {"holder", "started_at", "heartbeat_at"} <= set(refused.value.facts)
        world.run_for(timedelta(minutes=5))
        assert effects == ["first"] * 6
        assert world.wait(app.schedules.trigger("second")).outcome is FireOutcome.FIRED


def test_a_run_that_lost_its_lease_stops_before_its_next_effect(caplog: pytest.LogCaptureFixture) -> None:
    app, effects = sharing_a_lease()
    with World(app, start=NOON - timedelta(seconds=1), settings=app.settings) as world:
        world.run_for(timedelta(seconds=45))
        assert len(effects) == 2
        taken = world.wait(world.store.leases.acquire(app.name, "mirror", "other", "other", "other", -1))
        assert taken
        world.run_for(timedelta(minutes=5))
        (line,) = world.wait(app.schedules.ledger("first"))
        assert line.job_id is not None
        job = job_of(world, line.job_id)
    assert (job.state, job.result) == (JobState.COMPLETED, '"lease_lost"')
    assert effects == ["first", "first"]
    assert "lease lost" in caplog.text


def test_a_healthy_holder_keeps_its_lease_through_steps_of_the_wall_clock() -> None:
    """B026: leases are measured by the clock that steps don't touch."""
    app, effects = sharing_a_lease()
    with World(app, start=NOON - timedelta(seconds=1), settings=app.settings) as world:
        world.run_for(timedelta(seconds=20))
        for step in (timedelta(hours=-1), timedelta(days=1)):
            world.step_wall_clock(step)
            world.run_for(timedelta(seconds=10))
            taken = world.wait(world.store.leases.acquire(app.name, "mirror", "other", "other", "other", 60_000))
            assert not taken
        world.run_for(timedelta(minutes=4))
        (line,) = world.wait(app.schedules.ledger("first"))
        assert line.job_id is not None
        assert job_of(world, line.job_id).state is JobState.COMPLETED
    assert effects.count("first") == 6


def test_an_outage_of_the_store_leaves_the_tick_owed_and_the_loops_alive(tmp_path: Path) -> None:
    """B043: 60 seconds without the database; the next tick comes within a poll of its return."""
    app = Kizami()
    ticks: list[float] = []

    @app.scheduled("ten", cron="* * * * *")
    async def ten() -> None:
        ticks.append(app.runtime.clock.boot_ms() / 1000)

    path = tmp_path / "kizami.db"
    with World(app, database=str(path), settings=app.settings) as world:
        world.run_for(timedelta(seconds=61))
        assert len(ticks) == 1
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        world.run_for(timedelta(seconds=70))
        assert len(ticks) == 1
        other.execute("ROLLBACK")
        other.close()
        world.run_for(timedelta(seconds=2.5))
        assert len(ticks) == 2
        assert 131 <= ticks[1] <= 133
        world.run_for(timedelta(minutes=2))
        outcomes = [line.outcome for line in world.wait(app.schedules.ledger("ten"))]
    assert outcomes == [FireOutcome.FIRED] * 4


@pytest.mark.parametrize(
    ("guarantee", "fate"), [("at-least-once", "it will run again"), ("at-most-once", "it will be STALLED")]
)
def test_an_outcome_that_can_not_be_recorded_before_the_stop_is_named(
    tmp_path: Path, guarantee: str, fate: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, path = Kizami(), tmp_path / "kizami.db"

    @app.performer(guarantee=guarantee)
    async def slow() -> None:
        await app.runtime.clock.sleep(5)

    with World(app, database=str(path), settings=app.settings) as world:
        job_id = world.wait(slow.enqueue())
        world.run_for(timedelta(seconds=2))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            world.run_for(timedelta(seconds=10))
            with pytest.raises(StoreError):
                world.stop(app)
            other.execute("ROLLBACK")
    said = f"{job_id} has ended, but its outcome could not be recorded before the stop: {fate}"
    assert [each for each in caplog.messages if each.startswith(said)] != []


def test_an_outcome_is_recorded_when_the_store_comes_back_during_the_stop(tmp_path: Path) -> None:
    app, path = Kizami(), tmp_path / "kizami.db"

    @app.performer(guarantee="at-most-once")
    async def slow() -> None:
        await app.runtime.clock.sleep(5)

    with World(app, database=str(path), settings=app.settings) as world:
        job_id = world.wait(slow.enqueue())
        world.run_for(timedelta(seconds=2))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        world.run_for(timedelta(seconds=10))
        world.loop.call_later(5, other.close)
        world.stop(app)
        job = job_of(world, job_id)
    assert job.state is JobState.COMPLETED


def test_a_connection_that_breaks_is_replaced(tmp_path: Path) -> None:
    """B043: the error comes from SQLite itself; the next look has a connection of its own."""
    app = Kizami()
    ticks: list[int] = []

    @app.scheduled("minutely", cron="* * * * *")
    async def minutely() -> None:
        ticks.append(app.runtime.clock.now_ms())

    with World(app, database=str(tmp_path / "kizami.db"), settings=app.settings) as world:
        for _ in range(3):
            world.run_for(timedelta(seconds=60))
            connections = [each for each in live_connections() if is_open(each)]
            assert connections
            for connection in connections:
                connection.close()
        world.run_for(timedelta(seconds=62))
    assert len(ticks) == 4


def live_connections() -> list[sqlite3.Connection]:
    import gc  # noqa: PLC0415 - the only way to the connection that needs no door in the store

    return [each for each in gc.get_objects() if isinstance(each, sqlite3.Connection)]


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True
