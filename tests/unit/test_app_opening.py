"""An app may be opened within itself, and only where it was opened; it never loses the store under its worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.core.errors import KizamiError, StoreError, WrongStateError
from kizami.core.states import JobState
from kizami.runtime import SystemRuntime
from kizami.store.sqlite.store import SqliteStore


@pytest.fixture
def app(tmp_path: Path) -> Kizami:
    made = Kizami("shop", database_url=f"sqlite:///{tmp_path}/kizami.db")

    @made.performer
    async def double(number: int) -> int:
        return 2 * number

    return made


async def completed(app: Kizami, number: int) -> bool:
    """Enqueue a job and wait until it is completed."""
    changed = asyncio.Event()
    forget = app.store.on_change(changed.set)
    try:
        job_id = await app.performers["double"].enqueue(number)
        while (job := await app.jobs.get(job_id)) is None or job.state is not JobState.COMPLETED:
            await changed.wait()
            changed.clear()
    finally:
        forget()
    return True


async def test_an_app_that_is_opened_within_itself_stays_open_until_the_outer_end(app: Kizami) -> None:
    async with app.running():
        async with app.running(worker=False):
            assert await asyncio.wait_for(completed(app, 1), 20)
        await app.open()
        await app.close()
        assert await asyncio.wait_for(completed(app, 2), 20)
    with pytest.raises(StoreError, match="is closed"):
        await app.jobs.count_by_state()


async def test_an_app_that_is_opened_twice_is_closed_by_the_second_close(app: Kizami) -> None:
    await asyncio.gather(app.open(), app.open())
    await app.close()
    assert await app.jobs.count_by_state() == {}
    await app.close()
    with pytest.raises(StoreError, match="is closed"):
        await app.jobs.count_by_state()


async def test_closing_an_app_under_its_worker_is_refused_or_waits_for_its_end(app: Kizami) -> None:
    async with app.running():
        with pytest.raises(WrongStateError, match="App shop is running") as caught:
            await app.close()
        assert caught.value.remedy
        assert await asyncio.wait_for(completed(app, 1), 20)
    await app.open()
    async with app.working():
        await app.close()
        assert await asyncio.wait_for(completed(app, 2), 20)
    with pytest.raises(StoreError, match="is closed"):
        await app.jobs.count_by_state()


async def test_a_start_that_fails_leaves_an_app_that_can_be_opened(app: Kizami, tmp_path: Path) -> None:
    (tmp_path / "kizami.db").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        await app.open()
    (tmp_path / "kizami.db").rmdir()
    async with app.running(worker=False):
        assert await app.jobs.count_by_state() == {}


async def test_another_loop_is_told_whose_the_app_is_and_does_no_harm(app: Kizami) -> None:
    def elsewhere() -> list[KizamiError]:
        async def tried() -> list[KizamiError]:
            return [await refusal(call) for call in (app.open(), app.close(), app.performers["double"].enqueue(1))]

        return asyncio.run(tried())

    async with app.running():
        refusals = await asyncio.to_thread(elsewhere)
        assert await asyncio.wait_for(completed(app, 1), 20)
    assert [type(each) for each in refusals] == [WrongStateError] * 3
    assert all("event loop" in each.message and each.remedy for each in refusals)
    assert "Its tables are not those" not in str(refusals)


async def refusal(call: object) -> KizamiError:
    with pytest.raises(KizamiError) as caught:
        await call  # type: ignore[misc]  # a coroutine, of whatever
    return caught.value


def test_an_app_can_be_run_on_one_loop_after_another(app: Kizami) -> None:
    async def run() -> bool:
        async with app.running():
            return await asyncio.wait_for(completed(app, 1), 20)

    assert [asyncio.run(run()) for _ in range(2)] == [True, True]


async def test_a_store_that_is_open_refuses_to_be_opened_again(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "kizami.db"), SystemRuntime())
    await store.open()
    with pytest.raises(WrongStateError, match="is open already"):
        await store.open()
    await store.check()
    await store.close()
    await store.open()
    await store.close()
