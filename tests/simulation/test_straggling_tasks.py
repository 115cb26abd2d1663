"""Workers on one loop share one recorder of tasks, in whatever order they stop, and respect others' factories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kizami import Kizami, Performer, WorkerSettings
from kizami.core.states import JobState
from tests.simulation.real_app import app_in, ended

SETTINGS = WorkerSettings(poll_ms=50, stop_ms=500)
LEFT: list[asyncio.Task[Any]] = []


async def made() -> str:
    return "made"


async def careless() -> str:
    """Leave a task behind that never ends."""
    LEFT.append(asyncio.create_task(asyncio.Event().wait()))
    await asyncio.sleep(0)
    return "done"


def plain_factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coroutine, loop=loop, **options)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    LEFT.clear()
    yield
    LEFT.clear()


def careless_app(folder: Path, name: str) -> tuple[Kizami, Performer[None, str]]:
    app = app_in(folder, SETTINGS, name)
    return app, app.performer(careless)


async def leaves_no_task(app: Kizami, performer: Performer[None, str]) -> bool:
    job = await ended(app, await performer.enqueue())
    return job.state is JobState.COMPLETED and LEFT[-1].cancelled()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_apps_on_one_loop_may_stop_in_either_order(tmp_path: Path, order: tuple[int, int]) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    apps = [careless_app(tmp_path, name) for name in ("one", "two")]
    stacks = [AsyncExitStack(), AsyncExitStack()]
    for (app, _), stack in zip(apps, stacks, strict=True):
        await stack.enter_async_context(app.running())
    for app, performer in apps:
        assert await leaves_no_task(app, performer)
    await stacks[order[0]].aclose()
    assert await leaves_no_task(*apps[order[1]])
    await stacks[order[1]].aclose()
    assert loop.get_task_factory() is before


async def test_a_factory_that_was_there_works_on_and_is_there_again_after_the_stop(tmp_path: Path) -> None:
    """With eager tasks where Python has them."""
    loop = asyncio.get_running_loop()
    factory: Any = getattr(asyncio, "eager_task_factory", plain_factory)
    loop.set_task_factory(factory)
    app, performer = careless_app(tmp_path, "one")
    async with app.running():
        assert await leaves_no_task(app, performer)
    assert loop.get_task_factory() is factory


async def test_a_factory_put_over_ours_stays_and_sees_every_task(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    seen: list[asyncio.Task[Any]] = []
    app, performer = careless_app(tmp_path, "one")
    async with app.running():
        beneath: Any = loop.get_task_factory()

        def instrumented(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            seen.append(beneath(loop, coroutine, **options))
            return seen[-1]

        loop.set_task_factory(instrumented)
        assert await leaves_no_task(app, performer)
        assert LEFT[-1] in seen
    assert loop.get_task_factory() is instrumented
    again, its = careless_app(tmp_path, "two")
    async with again.running():
        assert await leaves_no_task(again, its)
    assert loop.get_task_factory() is instrumented
    assert await asyncio.create_task(made()) == "made"


async def test_a_task_that_ignores_its_cancellation_does_not_keep_its_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, WorkerSettings(poll_ms=50, stop_ms=200))
    released = asyncio.Event()

    async def linger() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    @app.performer(max_attempts=1)
    async def stubborn() -> str:
        LEFT.append(asyncio.create_task(linger()))
        await asyncio.sleep(0)
        return "done"

    async with app.running():
        job = await ended(app, await stubborn.enqueue())
        released.set()
    await asyncio.gather(*LEFT)
    assert (job.state, job.result) == (JobState.COMPLETED, '"done"')
    assert "code of it ignores its cancellation" in caplog.text
