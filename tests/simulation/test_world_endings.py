"""Ends that a performer should not have, and what becomes of its job and its worker."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

import pytest

from kizami import JobContext, Kizami, Snooze, Tick
from kizami.core.errors import InvalidInputError
from kizami.core.states import JobState
from kizami.engine.context import LeaseLost
from kizami.testing import World


def test_a_performer_that_exits_fails_its_attempt_and_the_worker_goes_on() -> None:
    app = Kizami()

    @app.performer(max_attempts=1)
    async def leaves(payload: int) -> None:
        sys.exit(payload)

    @app.performer
    async def stays(payload: int) -> int:
        return payload

    with World(app) as world:
        first = world.wait(leaves.enqueue(3))
        second = world.wait(stays.enqueue(7))
        world.run_for(timedelta(seconds=5))
        ended = world.wait(app.jobs.get(first))
        other = world.wait(app.jobs.get(second))
    assert ended is not None
    assert other is not None
    assert (ended.state, other.state) == (JobState.FAILED, JobState.COMPLETED)
    assert "SystemExit" in str(ended.error)


def test_a_lease_lost_inside_a_task_group_ends_the_job_as_lost() -> None:
    app = Kizami()

    @app.scheduled("mirror", every=timedelta(minutes=1), lease="mirror")
    async def mirror(tick: Tick, ctx: JobContext) -> None:
        del tick, ctx

        async def lose() -> None:
            raise LeaseLost

        async with asyncio.TaskGroup() as group:
            group.create_task(lose())

    with World(app) as world:
        world.run_for(timedelta(seconds=61))
        schedule = world.wait(app.schedules.get("mirror"))
        assert schedule.last_job_id is not None
        job = world.wait(app.jobs.get(schedule.last_job_id))
    assert job is not None
    assert (job.state, job.result) == (JobState.COMPLETED, '"lease_lost"')


@pytest.mark.parametrize("delay", [1500.5, -1, True, 10**19])
def test_a_snooze_that_no_clock_can_keep_is_refused(delay: int) -> None:
    with pytest.raises(InvalidInputError, match="delay_ms"):
        Snooze(delay)
