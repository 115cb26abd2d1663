"""A worker process: registered, beating, firing, dispatching, reaping; stopped gracefully."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kizami.engine.dispatcher import Dispatcher
from kizami.engine.firer import Firer
from kizami.engine.heart import Heart
from kizami.engine.reaper import Reaper
from kizami.engine.reporter import Reporter
from kizami.engine.station import Station
from kizami.engine.stragglers import record_tasks
from kizami.engine.waker import Waker
from kizami.runtime import sortable_id
from kizami.store.protocol import Worker as WorkerRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
    from typing import Any

    from kizami.engine.performing import Performing, Scheduled
    from kizami.engine.settings import WorkerSettings
    from kizami.runtime import Runtime
    from kizami.store.protocol import Store

log = logging.getLogger("kizami.worker")


class Worker:
    """The loops of one worker on an open store."""

    def __init__(
        self,
        app: str,
        performers: Mapping[str, Performing],
        schedules: Mapping[str, Scheduled],
        store: Store,
        runtime: Runtime,
        settings: WorkerSettings,
    ) -> None:
        self.worker_id = f"{runtime.process.host}-{runtime.process.pid}-{sortable_id(runtime.clock, runtime.entropy)}"
        self._app = app
        self._store = store
        self._runtime = runtime
        self._settings = settings
        self._bindings = tuple(sorted(performers))
        self._job_waker, self._tick_waker = Waker(runtime.clock), Waker(runtime.clock)
        station = Station(app, self.worker_id, store, runtime, settings)
        self._reporter = Reporter(store.jobs, runtime.clock)
        self._dispatcher = Dispatcher(station, performers, self._reporter, self._job_waker)
        self._firer = Firer(station, schedules, self._tick_waker)
        self._reaper = Reaper(station)
        self._heart = Heart(station, lambda: self._dispatcher.attempts)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work while the body runs, then stop gracefully: nothing is lost, unfinished jobs are handed back."""
        row = WorkerRow(self.worker_id, self._app, self._runtime.process, self._bindings)
        await self._store.workers.register(row)
        await self._firer.register()
        self._store.on_change(self._job_waker.wake)
        self._store.on_change(self._tick_waker.wake)
        forget_tasks = record_tasks(asyncio.get_running_loop())
        beat = self._runtime.beat("kizami-heart", self._heart.period_seconds, self._heart.beat)
        reporting = self._start("reporter", self._reporter.run)
        dispatching = self._start("dispatcher", self._dispatcher.run)
        others = [self._start("firer", self._firer.run), self._start("reaper", self._reaper.run)]
        others.append(self._start("heart", self._heart.run))
        log.info("worker %s started with %d bindings", self.worker_id, len(self._bindings))
        try:
            yield
        finally:
            self._dispatcher.finish()
            await dispatching
            await _end(*others)
            await self._firer.stop()
            await self._dispatcher.stop()
            await _end(reporting)
            await asyncio.to_thread(beat.stop)
            forget_tasks()
            await self._store.workers.leave(self.worker_id)
            log.info("worker %s stopped", self.worker_id)

    def _start(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        return asyncio.create_task(self._keep(name, loop), name=f"kizami-{name}")

    async def _keep(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop again if it ever breaks: one bug must not stop a worker that still looks healthy."""
        while True:
            try:
                return await loop()
            except Exception:
                log.exception("the %s broke and is started again", name)
                await self._runtime.clock.sleep(self._settings.poll_ms / 1000)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
