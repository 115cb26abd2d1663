"""What a child process says counts only for the job that it does now, and nothing of it is left behind."""

from __future__ import annotations

import json
import logging
import pickle
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami import JobLogFilter, Kizami, Performer, WorkerSettings
from kizami.core.states import JobState
from kizami.engine.child import Child, ChildDiedError, ChildFailedError
from kizami.engine.child_process import numbered
from kizami.engine.spawn import start
from tests.simulation import process_app
from tests.simulation.process_app import Babbler, Unreadable
from tests.simulation.real_app import all_gone, app_in, ended, started

SETTINGS = WorkerSettings(processes=1, stop_ms=2_000, poll_ms=50)


def in_process(app: Kizami, function: Callable[..., Any], **options: Any) -> Performer[Any, Any]:
    performer: Performer[Any, Any] = app.performer(runs_in="process", max_attempts=1, **options)(function)
    return performer


def is_there(pid: int) -> bool:
    """Tell whether a process exists, if only as a zombie."""
    return Path(f"/proc/{pid}").exists()


async def test_heartbeats_of_an_earlier_job_keep_no_later_job_alive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, SETTINGS)
    beats_on = in_process(app, process_app.beats_on)
    waits = in_process(app, process_app.waits, timeout=timedelta(seconds=1))
    async with app.running():
        await ended(app, await beats_on.enqueue())
        job = await ended(app, await waits.enqueue(5))
    assert (job.state, job.error) == (JobState.FAILED, "timed out after 1000 ms; its process was killed")
    assert job.progress is None
    assert "a heartbeat for its order 2" in caplog.text


async def test_what_a_thread_of_an_earlier_job_logs_does_not_bear_the_later_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, SETTINGS)
    caplog.handler.addFilter(JobLogFilter())
    beats_on = in_process(app, process_app.beats_on)
    with caplog.at_level(logging.INFO):
        async with app.running():
            earlier = await ended(app, await beats_on.enqueue())
            later = await ended(app, await in_process(app, process_app.waits).enqueue(1))
    left = [vars(record)["job_id"] for record in caplog.records if record.getMessage() == "left behind"]
    assert left
    assert later.job_id not in left
    assert set(left) <= {None, earlier.job_id}


async def test_a_fork_that_returns_late_answers_no_other_job(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    forks_on = in_process(app, process_app.forks_on)
    waits = in_process(app, process_app.waits)
    async with app.running():
        first = await ended(app, await forks_on.enqueue(0.5))
        second = await ended(app, await waits.enqueue(1.5))
    assert (first.state, second.state) == (JobState.COMPLETED, JobState.COMPLETED)
    assert first.result == second.result


async def test_what_a_dead_child_had_forked_is_killed(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    forks_and_dies = in_process(app, process_app.forks_and_dies)
    async with app.running():
        job = await ended(app, await forks_and_dies.enqueue(str(tmp_path / "pids")))
        await all_gone(*await started(tmp_path / "pids"))
    assert job.error == "its process ended by itself with exit code 3"


async def test_a_renewed_child_leaves_nothing_behind(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings(processes=1, jobs_per_process=1, poll_ms=50))
    leaves_behind = in_process(app, process_app.leaves_behind)
    async with app.running():
        job = await ended(app, await leaves_behind.enqueue(str(tmp_path / "pids")))
        await all_gone(*await started(tmp_path / "pids"))
    assert job.state is JobState.COMPLETED


async def test_a_stop_is_over_when_its_children_are(tmp_path: Path) -> None:
    """Those on their way out too, and what they had started."""
    app = app_in(tmp_path, SETTINGS)
    leaves_behind = in_process(app, process_app.leaves_behind)
    async with app.running():
        await ended(app, await leaves_behind.enqueue(str(tmp_path / "pids")))
    child, left = await started(tmp_path / "pids")
    assert not is_there(child)
    await all_gone(left)


async def test_a_child_passes_nothing_of_its_own_on_to_what_it_starts(tmp_path: Path) -> None:
    """No end of its line, no standard input of the worker's, no blocked signals."""
    app = app_in(tmp_path, SETTINGS)
    async with app.running():
        job = await ended(app, await in_process(app, process_app.inherits).enqueue())
    assert job.result == '[[],"",[]]'


async def test_a_performer_that_shuts_its_output_keeps_its_child(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    async with app.running():
        first = await ended(app, await in_process(app, process_app.shuts_its_output).enqueue())
        second = await ended(app, await in_process(app, process_app.pid).enqueue())
    assert first.result == second.result


async def test_a_performer_that_shuts_the_line_of_its_child_has_failed_at_once(tmp_path: Path) -> None:
    app = app_in(tmp_path, SETTINGS)
    async with app.running():
        job = await ended(app, await in_process(app, process_app.shuts_everything).enqueue())
    assert job.error == "its process ended by itself with exit code 1"


def test_an_order_that_can_not_be_read_fails_alone() -> None:
    child = Child()
    for _ in range(2):
        with pytest.raises(ChildFailedError, match="TrickyError"):
            child.load(Unreadable())
    child.stop()


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}"])
def test_a_child_that_says_nonsense_is_killed(text: str) -> None:
    child = Child()
    with pytest.raises(ChildDiedError, match="what went over its line made no sense"):
        child.load(Babbler(text))
    assert child.is_killed


def test_an_answer_of_another_process_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    child = Child()
    child.load(Babbler('{"end": "failed", "text": "not mine", "number": 1, "pid": 1}'))
    child.stop()
    assert "an answer for its order 1 came from process 1" in caplog.text


def test_signals_for_the_service_do_no_harm_to_a_child_that_starts() -> None:
    spawned = start(logging.WARNING)
    for number in (signal.SIGTERM, signal.SIGINT):
        spawned.process.send_signal(number)
    spawned.line.send_bytes(numbered(1, pickle.dumps(Unreadable())))
    answer = json.loads(spawned.line.recv_bytes())
    spawned.abandon()
    spawned.process.wait()
    assert (answer["number"], answer["pid"], answer["end"]) == (1, spawned.process.pid, "failed")


def test_a_child_that_was_killed_before_it_started_never_starts() -> None:
    child = Child()
    child.kill()
    with pytest.raises(ChildDiedError, match="was not started"):
        child.load(Unreadable())


def test_a_stopped_child_is_buried_and_its_line_is_closed() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    child = Child()
    with pytest.raises(ChildFailedError):
        child.load(Unreadable())
    assert descriptors() > before
    child.stop()
    child.stop()
    assert descriptors() == before
    with pytest.raises(ChildDiedError, match="had ended before"):
        child.load(Unreadable())
