"""A worker whose start fails leaves nothing behind, and a stopped one is told nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.core.errors import StoreError
from kizami.runtime import Background, SystemRuntime
from kizami.store.protocol import Registration
from kizami.store.protocol.store import ALL_TOPICS, Topic
from kizami.store.rooms.schedules import ScheduleRoom
from kizami.store.sqlite.store import SqliteStore


class Listening(SqliteStore):
    """A store that counts who listens to its changes, and whose schedules can't be registered when told so."""

    def __init__(self, path: Path, runtime: SystemRuntime) -> None:
        super().__init__(str(path), runtime)
        self.listeners = 0

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        end = super().on_change(wake, topics)
        self.listeners += 1

        def forget() -> None:
            self.listeners -= 1
            end()

        return forget


class Unregistered(ScheduleRoom):
    async def register(self, *_: object, **__: object) -> Registration:
        message = "The disk is gone."
        raise StoreError(message)


class Threadless(SystemRuntime):
    def beat(self, name: str, every_seconds: float, action: Callable[[], None]) -> Background:
        raise RuntimeError(name, every_seconds, action)


async def test_a_start_that_fails_at_its_schedules_leaves_no_worker(tmp_path: Path) -> None:
    runtime = SystemRuntime()
    store = Listening(tmp_path / "kizami.db", runtime)
    app = Kizami(store=store, runtime=runtime)
    async with app.running(worker=False):
        sound = store.schedules
        store.schedules = Unregistered(store._database)  # noqa: SLF001 - the room as it is, but for one operation
        with pytest.raises(StoreError, match="disk is gone"):
            await app.working().__aenter__()
        assert list(await store.workers.list()) == []
        assert store.listeners == 0
        store.schedules = sound
        async with app.working():
            assert len(await store.workers.list()) == 1


async def test_a_start_that_fails_at_its_heart_leaves_no_worker(tmp_path: Path) -> None:
    runtime = Threadless()
    store = Listening(tmp_path / "kizami.db", runtime)
    app = Kizami(store=store, runtime=runtime)
    async with app.running(worker=False):
        with pytest.raises(RuntimeError, match="kizami-heart"):
            await app.working().__aenter__()
        assert list(await store.workers.list()) == []
        assert store.listeners == 0


async def test_a_stopped_worker_is_told_of_no_change(tmp_path: Path) -> None:
    runtime = SystemRuntime()
    store = Listening(tmp_path / "kizami.db", runtime)
    app = Kizami(store=store, runtime=runtime)
    async with app.running(worker=False):
        for _ in range(3):
            async with app.working():
                assert store.listeners == 2
            assert store.listeners == 0
