"""What goes on although its job was given up is counted, bounded and shown; other kinds of jobs go on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from kizami import JobContext, Kizami, WorkerSettings, current_job
from kizami.core.states import JobState
from kizami.store.protocol import Outcome
from kizami.testing import World
from tests.crash.processes import until
from tests.simulation.real_app import SECONDS_MAX, app_in, ended

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


async def note_of(app: Kizami) -> str | None:
    (worker,) = await app.store.workers.list(app.name)
    return worker.note


async def until_noted(app: Kizami, *, noted: bool) -> None:
    async def is_so() -> bool:
        return (await note_of(app) is not None) is noted

    await until(is_so, f"a note is there: {noted}", seconds=SECONDS_MAX)


async def test_threads_that_go_on_are_bounded_and_async_jobs_are_not_held_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, WorkerSettings(overstays_max=2, poll_ms=50, stop_ms=200))
    released = threading.Event()

    @app.performer(timeout=timedelta(milliseconds=100), max_attempts=1)
    def hang() -> None:
        released.wait()

    @app.performer
    def sync() -> str:
        return "done"

    @app.performer
    async def quick() -> str:
        return "done"

    async with app.running():
        for job_id in [await hang.enqueue() for _ in range(2)]:
            assert (await ended(app, job_id)).state is JobState.FAILED
        await until_noted(app, noted=True)
        note = await note_of(app)
        waiting = await sync.enqueue()
        assert (await ended(app, await quick.enqueue())).state is JobState.COMPLETED
        held = await app.jobs.get(waiting)
        assert held is not None
        assert held.state is JobState.SCHEDULED
        released.set()
        assert (await ended(app, waiting)).state is JobState.COMPLETED
        await until_noted(app, noted=False)
    assert note is not None
    assert note.startswith("2 threads of jobs that timed out are still running")
    assert 'runs_in="process"' in note
    assert [record.levelname for record in caplog.records if record.getMessage() == note] == ["ERROR"]


@pytest.mark.parametrize("guarantee", ["at-least-once", "at-most-once"])
def test_an_async_performer_that_ignores_its_cancellation_gives_its_slot_back(guarantee: str) -> None:
    app = Kizami(settings=WorkerSettings(concurrency=1, overstays_max=2))
    released: list[bool] = []

    @app.performer(timeout=timedelta(seconds=10), max_attempts=1, guarantee=guarantee)
    async def stubborn() -> None:
        while not released:
            try:
                await app.runtime.clock.sleep(1)
            except asyncio.CancelledError:
                continue

    @app.performer
    async def quick() -> str:
        return "done"

    with World(app, settings=app.settings) as world:
        first = world.wait(stubborn.enqueue())
        world.run_for(timedelta(seconds=20))
        job = world.wait(app.jobs.get(first))
        after = world.wait(quick.enqueue())
        world.run_for(timedelta(seconds=1))
        other = world.wait(app.jobs.get(after))
        assert world.wait(note_of(app)) is None
        world.wait(stubborn.enqueue())
        world.run_for(timedelta(seconds=20))
        note = world.wait(note_of(app))
        held = world.wait(quick.enqueue())
        released.append(True)
        world.run_for(timedelta(seconds=3))
        at_last = world.wait(app.jobs.get(held))
        assert world.wait(note_of(app)) is None
    assert job is not None
    assert other is not None
    assert at_last is not None
    assert job.state is (JobState.FAILED if guarantee == "at-least-once" else JobState.STALLED)
    assert job.error == "timed out after 10000 ms; it ignores its cancellation"
    assert other.state is at_last.state is JobState.COMPLETED
    assert note is not None
    assert note.startswith("2 async performers go on")


@pytest.mark.parametrize(
    ("reaction", "state", "kept"),
    [
        ("returns", JobState.COMPLETED, '"late"'),
        ("raises", JobState.FAILED, "timed out after 10000 ms; then it raised ValueError: broken; caused by Cancelled"),
        ("passes", JobState.FAILED, "timed out after 10000 ms"),
    ],
)
def test_what_a_performer_does_about_its_cancellation_is_told(reaction: str, state: JobState, kept: str) -> None:
    app = Kizami()

    @app.performer(timeout=timedelta(seconds=10), max_attempts=1)
    async def late() -> str:
        try:
            await app.runtime.clock.sleep(1_000)
        except asyncio.CancelledError:
            if reaction == "raises":
                raise ValueError("broken")  # noqa: B904 - the cause is found without being named
            if reaction == "passes":
                raise
        return "late"

    with World(app) as world:
        job_id = world.wait(late.enqueue())
        world.run_for(timedelta(seconds=30))
        job = world.wait(app.jobs.get(job_id))
    assert job is not None
    assert job.state is state
    assert str(job.error or job.result).startswith(kept)
    if state is JobState.FAILED:
        assert [each.outcome for each in job.attempts] == [Outcome.TIMED_OUT]


async def test_a_performer_that_blocks_the_loop_past_its_deadline_is_cancelled_or_kept_by_what_it_does_next(
    tmp_path: Path,
) -> None:
    app = app_in(tmp_path, WorkerSettings(poll_ms=50))

    @app.performer(timeout=timedelta(milliseconds=100), max_attempts=1)
    async def block(payload: str) -> str:
        threading.Event().wait(0.4)  # on the event loop, as users' code should not
        if payload == "goes on":
            await app.runtime.clock.sleep(SECONDS_MAX)
        return "done"

    async with app.running():
        returned = await ended(app, await block.enqueue("returns"))
        cut_off = await ended(app, await block.enqueue("goes on"))
    assert (returned.state, returned.result) == (JobState.COMPLETED, '"done"')
    assert (cut_off.state, cut_off.error) == (JobState.FAILED, "timed out after 100 ms")


async def test_sync_performers_see_their_job_and_the_context_of_who_started_the_worker(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings(poll_ms=50))

    @app.performer
    def sync(ctx: JobContext) -> list[str]:
        seen = [TENANT.get(), current_job().job_id, ctx.job_id]
        TENANT.set("somebody else")
        return seen

    TENANT.set("acme")
    async with app.running():
        jobs = [await ended(app, await sync.enqueue()) for _ in range(2)]
    assert TENANT.get() == "acme"
    assert [job.result for job in jobs] == [f'["acme","{job.job_id}","{job.job_id}"]' for job in jobs]
