"""Real time and real threads: what blocks, hangs or lasts takes only itself down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kizami import Backoff, JobContext, Kizami, Tick, WorkerSettings
from kizami.core.states import JobState
from kizami.store.protocol import FireOutcome
from tests.crash.processes import until
from tests.simulation.real_app import SECONDS_MAX, app_in, ended


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Give an event that hanging threads wait for; set at the end, so that none outlives its test."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_performer_that_blocks_the_event_loop_loses_no_job_of_its_worker(tmp_path: Path) -> None:
    """The worker vouches from a thread; another worker that watches finds nothing to reap."""
    settings = WorkerSettings(grace_ms=300, vouch_ms=100, reap_ms=50, poll_ms=50)
    blocking, watching = app_in(tmp_path, settings), app_in(tmp_path, settings)
    reaped = threading.Event()

    @blocking.performer(timeout=timedelta(seconds=20))
    async def block(payload: float) -> str:
        reaped.wait(payload)  # on the event loop, as users' code should not
        return "done"

    @blocking.performer(timeout=timedelta(milliseconds=1_500))
    async def beat(ctx: JobContext) -> int:
        for _ in range(10):
            await blocking.runtime.clock.sleep(0.1)
            ctx.heartbeat()
        return ctx.attempt

    watcher = threading.Thread(target=lambda: asyncio.run(watch(watching, reaped)))
    async with blocking.running():
        watcher.start()
        jobs = [await beat.enqueue() for _ in range(3)]
        jobs.append(await block.enqueue(1.2))
        results = [await ended(blocking, job_id) for job_id in jobs]
    reaped.set()
    watcher.join()
    assert [(job.state, job.attempt) for job in results] == [(JobState.COMPLETED, 1)] * 4


async def watch(app: Kizami, until_set: threading.Event) -> None:
    async with app.running():
        await asyncio.to_thread(until_set.wait)


async def test_payload_functions_that_never_return_delay_no_other_schedule(
    tmp_path: Path, released: threading.Event
) -> None:
    app = app_in(tmp_path, WorkerSettings(payload_ms=1_000, poll_ms=50))

    @app.performer
    async def take(payload: str) -> str:
        return payload

    def hang(_: Tick) -> str:
        released.wait()
        return "late"

    def answer(tick: Tick) -> str:
        return tick.schedule

    for number in range(40):  # more than a pool of threads would hold
        app.schedule(f"hanging-{number}", take, payload=hang, every=timedelta(seconds=1))
    app.schedule("well", take, payload=answer, every=timedelta(seconds=1))
    async with app.running():

        async def three_fires() -> bool:
            return len(await app.schedules.ledger("well")) >= 3

        await until(three_fires, "the sound schedule fires", seconds=SECONDS_MAX)
        well = await app.schedules.ledger("well")
        hanging = await app.schedules.ledger("hanging-39")
    assert {line.outcome for line in well} == {FireOutcome.FIRED}
    assert max(line.acted_at - line.planned_at for line in well) < 900
    assert {line.outcome for line in hanging} <= {FireOutcome.FAILED, FireOutcome.MISSED}
    assert hanging


async def test_a_hanging_thread_keeps_no_slot_from_other_jobs_and_its_late_answer_is_ignored(
    tmp_path: Path, released: threading.Event
) -> None:
    app = app_in(tmp_path, WorkerSettings(concurrency=2, stop_ms=200))

    @app.performer(timeout=timedelta(milliseconds=200), max_attempts=2, backoff=Backoff.fixed(timedelta(0)))
    def hang() -> str:
        released.wait()
        return "late"

    @app.performer(timeout=timedelta(milliseconds=200), guarantee="at-most-once")
    def hang_once() -> None:
        released.wait()

    @app.performer
    def quick() -> str:
        return threading.current_thread().name

    async with app.running():
        hanging, unknown = await hang.enqueue(), await hang_once.enqueue()
        failed, stalled = await ended(app, hanging), await ended(app, unknown)
        done = await ended(app, await quick.enqueue())
        released.set()
    assert (failed.state, failed.attempt) == (JobState.FAILED, 2)
    assert stalled.state is JobState.STALLED
    assert (done.state, done.result) == (JobState.COMPLETED, '"kizami-job"')


async def test_a_sync_performer_beats_from_its_thread(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings(heartbeat_write_ms=50))
    seen, beaten = threading.Event(), threading.Event()

    @app.performer(timeout=timedelta(seconds=20))
    def work(ctx: JobContext) -> str:
        ctx.heartbeat(0.25)
        beaten.set()
        seen.wait(SECONDS_MAX)
        return "seen"

    async with app.running():
        job_id = await work.enqueue()

        async def progress() -> bool:
            found = await app.jobs.get(job_id)
            return found is not None and found.progress == 0.25

        await until(progress, "the progress is written", seconds=SECONDS_MAX)
        seen.set()
        job = await ended(app, job_id)
    assert beaten.is_set()
    assert (job.state, job.result) == (JobState.COMPLETED, '"seen"')
