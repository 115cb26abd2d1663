"""Ends that a performer should not have, and what becomes of its job and its worker."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import NoReturn

import pytest

from kizami import JobContext, Kizami, Performer, Snooze, Tick
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


@pytest.mark.parametrize(
    "delay", [1500, True, timedelta(microseconds=1), timedelta(seconds=-1), timedelta(days=100_000)]
)
def test_a_snooze_that_no_clock_can_keep_is_refused(delay: timedelta) -> None:
    with pytest.raises(InvalidInputError, match="Snooze delay"):
        Snooze(delay)


class OwnExit(BaseException):
    """Not an Exception: what only catches those lets it through."""


class MuteError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def deep(level: int) -> int:
    return deep(level + 1)


def raise_group() -> NoReturn:
    raise ExceptionGroup("two", [ValueError("first"), ExceptionGroup("inner", [KeyError("second")])])


def raise_with_a_cause() -> int:
    try:
        return deep(0)
    except RecursionError as error:
        raise ValueError("outer") from error


def throw(error: BaseException) -> Callable[[], NoReturn]:
    def thrower() -> NoReturn:
        raise error

    return thrower


async def answer() -> str:
    return "awaited"


FAILURES: dict[str, tuple[Callable[[], object], str]] = {
    "a BaseException of its own": (throw(OwnExit("mine")), "OwnExit: mine"),
    "GeneratorExit": (throw(GeneratorExit()), "GeneratorExit"),
    "KeyboardInterrupt": (throw(KeyboardInterrupt()), "KeyboardInterrupt"),
    "SystemExit": (throw(SystemExit(3)), "SystemExit(3)"),
    "StopIteration": (throw(StopIteration()), "StopIteration"),
    "CancelledError": (throw(asyncio.CancelledError()), "CancelledError"),
    "TimeoutError": (throw(TimeoutError("upstream")), "TimeoutError: upstream"),
    "a group": (raise_group, "two (2 sub-exceptions) [ValueError: first, KeyError: 'second']"),
    "a recursion": (raise_with_a_cause, "ValueError: outer; caused by RecursionError: maximum recursion"),
    "lone surrogates": (throw(ValueError("\ud800" * 5_000)), "ValueError: \\ud800\\ud800"),
    "an unshowable error": (throw(MuteError()), "MuteError: its message can't be shown (KeyboardInterrupt)"),
    "a generator": (lambda: (each for each in "abc"), "returned a generator, which nobody runs"),
}


@pytest.mark.parametrize("is_async", [True, False])
def test_whatever_a_performer_raises_is_its_attempts_failure_and_shown(*, is_async: bool) -> None:
    app = Kizami()

    if is_async:

        @app.performer(binding="ends", max_attempts=1)
        async def ends(payload: str) -> object:
            return FAILURES[payload][0]()
    else:

        @app.performer(binding="ends", max_attempts=1)
        def ends(payload: str) -> object:
            return FAILURES[payload][0]()

    with World(app) as world:
        ids = {name: world.wait(ends.enqueue(name)) for name in FAILURES}
        world.run_for(timedelta(seconds=5))
        jobs = {name: world.wait(app.jobs.get(job_id)) for name, job_id in ids.items()}
    assert {name: job.state for name, job in jobs.items() if job and job.state is not JobState.FAILED} == {}
    said = {name: str(job.error) for name, job in jobs.items() if job}
    assert {name: text for name, text in said.items() if FAILURES[name][1] not in text} == {}
    assert max(map(len, said.values())) == 2_000


@pytest.mark.parametrize(
    ("returned", "state", "kept"),
    [
        (lambda: "x" * 10_000_000, JobState.COMPLETED, "result dropped: 10000002 characters"),
        (object, JobState.COMPLETED, "result dropped: it is not JSON"),
        (lambda: answer(), JobState.COMPLETED, '"awaited"'),  # noqa: PLW0108 - a sync function with an async answer
        (lambda: [answer], JobState.COMPLETED, "result dropped: it is not JSON"),
    ],
)
def test_what_a_sync_performer_returns_is_awaited_kept_or_dropped_with_the_reason(
    returned: Callable[[], object], state: JobState, kept: str
) -> None:
    app = Kizami()
    performer: Performer[None, object] = app.performer(binding="returns")(partial(returned))
    with World(app) as world:
        job_id = world.wait(performer.enqueue())
        world.run_for(timedelta(seconds=5))
        job = world.wait(app.jobs.get(job_id))
    assert job is not None
    assert job.state is state
    assert kept in f"{job.result} {job.result_note}"


def test_an_awaitable_that_an_async_performer_returns_is_awaited_once_and_no_further() -> None:
    app = Kizami()

    @app.performer(max_attempts=1)
    async def twice() -> object:
        return answer()

    with World(app) as world:
        job_id = world.wait(twice.enqueue())
        world.run_for(timedelta(seconds=5))
        job = world.wait(app.jobs.get(job_id))
    assert job is not None
    assert job.state is JobState.FAILED
    assert "returned a coroutine, which nobody runs" in str(job.error)


@pytest.mark.parametrize("runs_as", ["async", "sync"])
def test_a_failure_is_logged_with_the_performers_traceback_and_not_ours(
    runs_as: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Kizami()

    def break_down() -> int:
        message = "no such order"
        raise LookupError(message)

    async def later() -> int:
        return break_down()

    performer = app.performer(max_attempts=1, binding="charge")(later if runs_as == "async" else break_down)
    with World(app) as world:
        world.wait(performer.enqueue())
        world.run_for(timedelta(seconds=2))
    (record,) = [each for each in caplog.records if "attempt 1 of charge" in each.getMessage()]
    assert record.exc_info is not None
    shown = logging.Formatter().formatException(record.exc_info)
    assert "in break_down" in shown
    assert shown.endswith("LookupError: no such order")
    assert "kizami/engine" not in shown
    assert "kizami/app" not in shown
