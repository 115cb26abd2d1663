"""An app's blocking calls, from plain threads, on both databases."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami import ConfigurationError, JobState, Kizami, PayloadError, WrongStateError
from kizami.app.performer import Performer
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.protocol import JobFilter
from kizami.testing import World
from tests.conformance.callers import plain
from tests.conformance.postgres_home import settle_in

_PROGRAM = """
import os, sys
from kizami import Kizami, WrongStateError
app = Kizami("shop", database_url=sys.argv[1])
@app.performer
def send(payload: dict[str, int]) -> None: ...
app.blocking.enqueue(send, {"n": 1})
child = os.fork()
if child == 0:
    try:
        app.blocking.enqueue(send, {"n": 2})
    except WrongStateError as error:
        os._exit(7 if "fork" in str(error) else 1)
    os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'kizami.db'}"
    found: str = request.getfixturevalue("postgres_url")
    migrate(place_of(found))
    settle_in(tmp_path, found)
    return found


@pytest.fixture
def app(url: str) -> Iterator[Kizami]:
    made = Kizami("shop", database_url=url)

    @made.performer
    def double(payload: int) -> int:
        return 2 * payload

    with made.blocking:
        yield made


@pytest.fixture
def double(app: Kizami) -> Performer[int, Any]:
    return app.performers["double"]


def test_a_program_without_a_loop_does_it_all(app: Kizami, double: Performer[int, Any]) -> None:
    calls = app.blocking
    first = calls.enqueue(double, 1, unique_key="k")
    again = calls.enqueue(double, 2, unique_key="k")
    assert (first.existing, again.existing, again) == (False, True, first)
    more = calls.enqueue_many(double.job(number) for number in range(3))
    assert {job.job_id for job in calls.jobs.list(JobFilter("shop")).jobs} == {first, *more}
    calls.jobs.cancel(first)
    found = calls.jobs.get(first)
    assert found is not None
    assert found.state is JobState.CANCELLED
    with pytest.raises(WrongStateError):
        calls.jobs.cancel(first)
    assert calls.bindings.pause("double").paused_at is not None
    with pytest.raises(PayloadError):
        calls.enqueue(double, "x")  # type: ignore[misc]  # a user without mypy


def test_it_waits_for_a_jobs_end_in_a_worker_of_this_process(app: Kizami, double: Performer[int, Any]) -> None:
    working, ended = threading.Event(), threading.Event()

    async def work() -> None:
        async with app.running():
            working.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert working.wait(30)
        job_id = app.blocking.enqueue(double, 21)
        job = app.blocking.jobs.wait(job_id, timeout=timedelta(seconds=30))
    finally:
        ended.set()
        thread.join()
    assert job is not None
    assert (job.state, job.result) == (JobState.COMPLETED, "42")


def test_a_wait_that_is_over_returns_the_job_as_it_is(app: Kizami, double: Performer[int, Any]) -> None:
    job = app.blocking.jobs.wait(app.blocking.enqueue(double, 1), timeout=timedelta(0))
    assert job is not None
    assert job.state is JobState.SCHEDULED


def test_many_threads_share_it(app: Kizami, double: Performer[int, Any]) -> None:
    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(lambda number: app.blocking.enqueue(double, number), range(40)))
    assert len(set(ids)) == 40
    assert app.blocking.jobs.count_by_state()["double"][JobState.SCHEDULED] == 40


def test_closed_it_opens_again(app: Kizami, double: Performer[int, Any]) -> None:
    for number in range(2):
        app.blocking.enqueue(double, number)
        app.blocking.close()
        app.blocking.close()
    assert "kizami-blocking" not in {thread.name for thread in threading.enumerate()}


async def test_on_an_event_loop_it_is_refused_with_the_way_out(app: Kizami, double: Performer[int, Any]) -> None:
    with pytest.raises(WrongStateError, match=r"Await .* or .*to_thread"):
        app.blocking.enqueue(double, 1)
    assert await asyncio.to_thread(app.blocking.enqueue, double, 1)


async def test_it_enqueues_in_the_callers_transaction(app: Kizami, double: Performer[int, Any], tmp_path: Path) -> None:
    await asyncio.to_thread(app.blocking.bindings.list)  # a SQLite file is made by its first opening

    def in_between(connection: Any) -> str:
        job_id = app.blocking.enqueue(double, 1, connection=connection)
        assert app.blocking.jobs.get(job_id) is None
        return job_id

    async with plain(tmp_path, any_thread=True) as caller:
        job_id = await asyncio.to_thread(in_between, caller.connection)
        await caller.commit()
    assert await asyncio.to_thread(app.blocking.jobs.get, job_id) is not None


def test_a_fork_of_the_opener_is_refused_and_the_process_ends_cleanly(url: str) -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, url], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (7, "")


def test_in_a_tests_world_it_never_reaches_the_real_database() -> None:
    app = Kizami("shop", database_url="sqlite:////nowhere/kizami.db")

    @app.performer
    def double(payload: int) -> int:
        return payload

    with World(app, start="2026-01-01") as world:
        assert world is not None
        with pytest.raises(ConfigurationError, match="was given a store"):
            app.blocking.enqueue(double, 1)
