"""Performers in child processes: they can be killed, they may die, and nothing of that reaches the worker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami import Backoff, Guarantee, JobLogFilter, Kizami, Performer, WorkerSettings
from kizami.core.errors import DefinitionError
from kizami.core.states import JobState
from kizami.store.protocol import Outcome
from kizami.testing import World, run_performer
from tests.simulation import process_app
from tests.simulation.real_app import SECONDS_MAX, all_gone, app_in, ended, started

SETTINGS = WorkerSettings(processes=1, stop_ms=500, poll_ms=50)


def in_process(app: Kizami, function: Callable[..., Any], **options: Any) -> Performer[Any, Any]:
    performer: Performer[Any, Any] = app.performer(runs_in="process", **options)(function)
    return performer


async def test_a_child_process_performs_job_after_job_and_is_renewed_after_its_share(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings(processes=1, jobs_per_process=2, poll_ms=50))
    pid = in_process(app, process_app.pid)
    async with app.running():
        jobs = [await ended(app, await pid.enqueue()) for _ in range(3)]
    first, second, third = (int(str(job.result)) for job in jobs)
    assert first == second != third
    assert os.getpid() not in (first, third)
    await all_gone(first, third)


async def test_a_performer_in_a_process_knows_its_job_and_its_tick(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    facts = in_process(app, process_app.facts, timeout=timedelta(seconds=90))
    local_day = in_process(app, process_app.local_day)
    app.schedule("day", local_day, cron="0 0 * * *", time_zone="Asia/Tokyo", driver="external")
    async with app.running():
        job = await ended(app, await facts.enqueue("刻み"))
        fired = await app.schedules.tick("day", datetime(2026, 11, 29, 15, tzinfo=UTC), by="test")
        assert fired.job_id is not None
        day = await ended(app, fired.job_id)
    assert job.result is not None
    assert job.started_at is not None
    assert f'["刻み","{job.job_id}",1,"kizami/{job.job_id}"' in job.result
    deadline = float(job.result.rpartition(",")[2].rstrip("]"))
    assert 0 <= deadline - job.started_at - 90_000 < SECONDS_MAX * 1_000
    assert day.result == '"2026-11-30 Asia/Tokyo"'


async def test_decorated_functions_and_classes_are_found_by_their_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", f"sqlite:///{tmp_path / 'kizami.db'}")
    app = process_app.app
    async with app.running():
        doubled = await ended(app, await process_app.decorated.enqueue(21))
        added = await ended(app, await app.performers["Adder"].enqueue([1, 2]))
    assert (doubled.result, added.result) == ("42", "3")


async def test_log_records_of_a_process_reach_the_handlers_of_its_worker_with_their_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, SETTINGS)
    logs = in_process(app, process_app.logs)
    caplog.handler.addFilter(JobLogFilter())
    with caplog.at_level(logging.INFO):
        async with app.running():
            job = await ended(app, await logs.enqueue())
    (record,) = [record for record in caplog.records if record.name == "shop"]
    assert (record.levelname, record.getMessage()) == ("WARNING", f"from {job.job_id}")
    assert vars(record)["job_id"] == job.job_id
    assert vars(record)["attempt"] == 1


async def test_heartbeats_from_a_process_move_its_deadline(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    beats = in_process(app, process_app.beats, timeout=timedelta(seconds=1))
    async with app.running():
        job = await ended(app, await beats.enqueue(8))
    assert (job.state, job.result, job.attempt) == (JobState.COMPLETED, '"alive to the end"', 1)


@pytest.mark.parametrize("guarantee", list(Guarantee))
async def test_at_its_deadline_a_process_is_killed_with_what_it_started(tmp_path: Path, guarantee: Guarantee) -> None:
    """An unreported end: at-least-once fails and may try again, at-most-once is STALLED, whatever its attempts."""
    app = app_in(tmp_path, SETTINGS)
    options: dict[str, Any] = {
        "guarantee": guarantee,
        "timeout": timedelta(seconds=2),
        "backoff": Backoff.fixed(timedelta(0)),
    }
    forever = in_process(app, process_app.forever, max_attempts=2, **options)
    pid = in_process(app, process_app.pid)
    async with app.running():
        job = await ended(app, await forever.enqueue(str(tmp_path / "pids")))
        after = await ended(app, await pid.enqueue())
        await all_gone(*await started(tmp_path / "pids"))
    assert job.error == "timed out after 2000 ms; its process was killed"
    assert after.state is JobState.COMPLETED
    again = guarantee is Guarantee.AT_LEAST_ONCE
    assert (job.state, job.attempt) == ((JobState.FAILED, 2) if again else (JobState.STALLED, 1))
    assert {each.outcome for each in job.attempts} == {Outcome.TIMED_OUT if again else Outcome.STALLED}


ENDS = {
    "exit": (JobState.FAILED, "its process ended by itself with exit code 3"),
    "kill": (JobState.FAILED, "SIGKILL: it was killed from outside, or for want of memory"),
    "sys.exit": (JobState.FAILED, "SystemExit: 4"),
    "tricky": (JobState.FAILED, "TrickyError: tricky"),
    "cause": (JobState.FAILED, "RuntimeError: no\\ud800; caused by ValueError: invalid literal"),
    "cancel": (JobState.CANCELLED, "enough"),
    "store": (JobState.FAILED, "can't be reached from a performer that runs in a process"),
    "generator": (JobState.FAILED, "returned a generator, which nobody runs"),
    "object": (JobState.COMPLETED, "result dropped: it is not JSON"),
    "big": (JobState.COMPLETED, "result dropped: 10000002 characters"),
}


async def test_whatever_a_process_ends_with_takes_only_its_attempt(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    ends, pid = in_process(app, process_app.ends, max_attempts=1), in_process(app, process_app.pid)
    async with app.running():
        jobs = {payload: await ended(app, await ends.enqueue(payload)) for payload in ENDS}
        snoozed = await ends.enqueue("snooze")
        after = await ended(app, await pid.enqueue())
        waiting = await app.jobs.get(snoozed)
    assert {payload: job.state for payload, job in jobs.items()} == {name: end[0] for name, end in ENDS.items()}
    said = {payload: f"{job.error} {job.result_note}" for payload, job in jobs.items()}
    assert [payload for payload, (_, words) in ENDS.items() if words not in said[payload]] == []
    assert after.state is JobState.COMPLETED
    assert waiting is not None
    assert (waiting.state, waiting.attempt) == (JobState.SCHEDULED, 0)


async def test_a_process_that_dies_in_an_at_most_once_job_leaves_it_stalled(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    ends = in_process(app, process_app.ends, guarantee="at-most-once", max_attempts=5)
    async with app.running():
        died = await ended(app, await ends.enqueue("kill"))
        reported = await ended(app, await ends.enqueue("cancel"))
    assert (died.state, died.attempt) == (JobState.STALLED, 1)
    assert reported.state is JobState.CANCELLED


async def test_a_process_that_died_while_idle_is_replaced(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    pid = in_process(app, process_app.pid, max_attempts=1)
    async with app.running():
        first = int(str((await ended(app, await pid.enqueue())).result))
        os.kill(first, 9)
        second = await ended(app, await pid.enqueue())
    assert second.state is JobState.COMPLETED
    assert int(str(second.result)) != first


async def test_a_stop_kills_what_is_not_done_and_hands_it_back(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    forever = in_process(app, process_app.forever, max_attempts=1)
    async with app.running():
        job_id = await forever.enqueue(str(tmp_path / "pids"))
        pids = await started(tmp_path / "pids")
    async with app.running(worker=False):
        job = await app.jobs.get(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.SCHEDULED, 0)
    await all_gone(*pids)


async def test_jobs_for_processes_wait_for_one_and_others_do_not(tmp_path: Path) -> None:
    """The timeout counts from the start in a process, not from a place in a line."""
    app = app_in(tmp_path, SETTINGS)
    beats = in_process(app, process_app.beats, timeout=timedelta(seconds=3), max_attempts=1)

    @app.performer
    async def quick() -> str:
        return "done"

    async with app.running():
        waiting = [await beats.enqueue(8) for _ in range(3)]
        assert (await ended(app, await quick.enqueue())).state is JobState.COMPLETED
        jobs = [await ended(app, job_id) for job_id in waiting]
    assert [(job.state, job.attempt) for job in jobs] == [(JobState.COMPLETED, 1)] * 3


def test_in_a_virtual_world_threads_stand_for_processes() -> None:
    app = Kizami()
    pid = in_process(app, process_app.pid)
    with World(app) as world:
        job_id = world.wait(pid.enqueue())
        world.run_for(timedelta(seconds=1))
        job = world.wait(app.jobs.get(job_id))
    assert job is not None
    assert job.result == str(os.getpid())
    assert run_performer(pid) == os.getpid()


def nested() -> Callable[..., object]:
    def inner() -> None: ...

    return inner


async def coroutine() -> None: ...


@pytest.mark.parametrize(
    ("function", "runs_in", "words"),
    [
        (nested(), "process", "can't find nested.<locals>.inner"),
        (lambda: None, "process", "can't find <lambda>"),
        (process_app.decorated.is_made_of, "process", "can't find Performer.is_made_of"),
        (coroutine, "process", "is async and runs on the event loop"),
        (coroutine, "thread", "is async and runs on the event loop"),
        (process_app.pid, "fiber", "runs_in is 'fiber'"),
    ],
)
def test_what_a_child_process_could_not_find_is_refused_at_definition(
    function: Callable[..., object], runs_in: Any, words: str
) -> None:
    with pytest.raises(DefinitionError, match=words) as refused:
        Kizami().performer(binding="wrong", runs_in=runs_in)(function)
    assert refused.value.remedy
    assert refused.value.facts["field"] == "runs_in"


async def test_a_name_that_leads_elsewhere_is_refused_at_the_start(tmp_path: Path) -> None:
    def impostor() -> None: ...

    impostor.__qualname__ = "pid"
    impostor.__module__ = process_app.__name__
    app = app_in(tmp_path, SETTINGS)
    in_process(app, impostor)
    with pytest.raises(DefinitionError, match=r"looks for it at tests\.simulation\.process_app\.pid"):
        async with app.running():
            pass
