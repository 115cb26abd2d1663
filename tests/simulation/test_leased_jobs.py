"""What becomes of a job that finds its lease held, or loses it while it runs."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from kizami import Backoff, JobContext, Kizami, WorkerSettings
from kizami.core.errors import DefinitionError
from kizami.core.states import JobState
from kizami.engine.lease import LeaseSettings
from kizami.store.protocol import FireOutcome, LeaseFence
from tests.crash.processes import until
from tests.simulation.real_app import SECONDS_MAX, app_in, ended

SETTINGS = WorkerSettings(poll_ms=50, lease=LeaseSettings(beat_ms=50))


async def taken_over(app: Kizami) -> None:
    """Let another run take the lease."""
    (lease,) = await app.store.leases.list(app.name)
    assert lease.run_id is not None
    await app.store.leases.release(app.name, LeaseFence("mirror", lease.run_id))
    assert await app.store.leases.acquire(app.name, "mirror", "other", "somebody", "other", 600_000)


async def is_held(app: Kizami) -> bool:
    return any(lease.run_id is not None for lease in await app.store.leases.list(app.name))


async def triggered(app: Kizami) -> str:
    record = await app.schedules.trigger("s")
    assert record.job_id is not None
    return record.job_id


async def test_a_retry_waits_for_a_held_lease_and_the_ledger_keeps_its_line(tmp_path: Path) -> None:
    app, tries = app_in(tmp_path, SETTINGS), []

    @app.performer(max_attempts=2, backoff=Backoff(base=timedelta(milliseconds=1)))
    async def work(context: JobContext) -> str:
        tries.append(context.attempt)
        if len(tries) == 1:
            await app.store.leases.release(app.name, context.fence or LeaseFence("", ""))
            assert await app.store.leases.acquire(app.name, "mirror", "other", "somebody", "other", 600_000)
            raise ValueError
        return "done"

    app.schedule("s", work, cron="0 0 * * *", lease="mirror", driver="external")
    async with app.running():
        record = await app.schedules.tick("s")
        job_id = record.job_id or ""

        async def waits() -> bool:
            found = await app.jobs.get(job_id)
            return found is not None and "held by another run" in (found.error or "")

        await until(waits, "the retry meets the lease", seconds=SECONDS_MAX)
        await app.store.leases.release(app.name, LeaseFence("mirror", "other"))
        job = await ended(app, job_id)
        (line,) = await app.schedules.ledger("s")
    assert (job.state, job.result, tries) == (JobState.COMPLETED, '"done"', [1, 2])
    assert line.outcome is FireOutcome.FIRED


async def test_the_first_attempt_of_a_tick_is_skipped(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)

    @app.performer
    async def work() -> str:
        return "done"

    app.schedule("s", work, cron="0 0 * * *", lease="mirror", driver="external")
    async with app.running():
        await app.store.leases.acquire(app.name, "mirror", "other", "somebody", "other", 600_000)
        job = await ended(app, (await app.schedules.tick("s")).job_id or "")
        (line,) = await app.schedules.ledger("s")
    assert job.result == '"lease_held"'
    assert line.outcome is FireOutcome.SKIPPED_LEASE


@pytest.mark.parametrize("raises", [False, True])
async def test_a_run_that_lost_its_lease_and_noticed_nothing_ends_lease_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, raises: bool
) -> None:
    app, go_on = app_in(tmp_path, SETTINGS), asyncio.Event()

    @app.performer
    async def work() -> str:
        await go_on.wait()
        if raises:
            raise ValueError
        return "done"

    app.schedule("s", work, cron="0 0 1 1 *", lease="mirror")
    async with app.running():
        job_id = await triggered(app)
        await until(lambda: is_held(app), "the lease is taken", seconds=SECONDS_MAX)
        await taken_over(app)

        async def is_lost() -> bool:
            return "lease lost" in caplog.text

        await until(is_lost, "the beat finds the lease lost", seconds=SECONDS_MAX)
        go_on.set()
        job = await ended(app, job_id)
    assert (job.state, job.result) == (JobState.COMPLETED, '"lease_lost"')


async def test_a_sync_performer_can_ask_for_its_lease(tmp_path: Path) -> None:
    app, go_on, answers = app_in(tmp_path, WorkerSettings(poll_ms=50)), threading.Event(), []

    @app.performer
    def work(context: JobContext) -> None:
        answers.append(context.still_ours_blocking())
        go_on.wait(SECONDS_MAX)
        answers.append(context.still_ours_blocking())
        context.require_lease_blocking()

    app.schedule("s", work, cron="0 0 1 1 *", lease="mirror")
    async with app.running():
        job_id = await triggered(app)

        async def has_asked() -> bool:
            return bool(answers)

        await until(has_asked, "the performer has asked", seconds=SECONDS_MAX)
        await taken_over(app)
        go_on.set()
        job = await ended(app, job_id)
    assert answers == [True, False]
    assert (job.state, job.result) == (JobState.COMPLETED, '"lease_lost"')


def in_process() -> None:
    """Do nothing, anywhere."""


def test_a_lease_is_refused_where_nothing_could_ask_for_it() -> None:
    app = Kizami()
    performer = app.performer(runs_in="process")(in_process)
    with pytest.raises(DefinitionError, match="runs in a process") as refusal:
        app.schedule("s", performer, cron="0 0 * * *", lease="mirror")
    assert "thread" in str(refusal.value)
