"""A worker process: registered, beating, firing, dispatching, reaping; stopped gracefully."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from kizami.engine.condition import Condition
from kizami.engine.dispatcher import Dispatcher
from kizami.engine.firer import Firer
from kizami.engine.heart import Heart
from kizami.engine.reaper import Reaper
from kizami.engine.reporter import Reporter
from kizami.engine.station import Station
from kizami.engine.stragglers import record_tasks
from kizami.engine.waker import Waker
from kizami.engine.watch import Watch
from kizami.runtime import sortable_id
from kizami.store.protocol import Topic
from kizami.store.protocol import Worker as WorkerRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from kizami.engine.condition import Part
    from kizami.engine.performing import Performing, Scheduled
    from kizami.engine.settings import WorkerSettings
    from kizami.runtime import Runtime
    from kizami.store.protocol import Store

log = logging.getLogger("kizami.worker")
STOPPED: Final = (
    "This worker has stopped, but still holds a lease or a claim, because code of a job goes on or the store was away. "
    "It is freed as soon as its process has ended."
)


class _Loop(Protocol):
    """What a worker does all the time."""

    part: Part

    async def run(self) -> None:
        """Do it for ever."""
        ...


class Worker:
    """The loops of one worker on an open store; without `schedules` it performs jobs only and registers no code."""

    def __init__(
        self,
        app: str,
        performers: Mapping[str, Performing],
        schedules: Mapping[str, Scheduled] | None,
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
        self.condition = Condition(runtime.clock)
        station = Station(app, self.worker_id, store, runtime, settings, self.condition)
        self._reporter = Reporter(station)
        self._dispatcher = Dispatcher(station, performers, self._reporter, self._job_waker)
        self._fires = schedules is not None
        self._firer = Firer(station, schedules or {}, self._tick_waker)
        self._reaper = Reaper(station)
        self._heart = Heart(station, lambda: self._dispatcher.attempts)
        self._watch = Watch(station, lambda: self._dispatcher.bars)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work while the body runs, then stop gracefully: nothing is lost, unfinished jobs are handed back.

        A step of the start that fails takes back the steps before it.
        """
        async with AsyncExitStack() as undo:
            await self._enlist(undo)
            self._start_loops(undo)
            log.info("worker %s started with %d bindings", self.worker_id, len(self._bindings))
            yield
        log.info("worker %s stopped", self.worker_id)

    async def _enlist(self, undo: AsyncExitStack) -> None:
        """Make the worker known to the store and the store's changes known to the worker."""
        row = WorkerRow(self.worker_id, self._app, self._runtime.process, self._bindings)
        undo.push_async_callback(self._leave)  # also if only the answer was lost
        await self._store.workers.register(row)
        undo.callback(self._store.on_change(self._job_waker.tell))
        undo.callback(self._store.on_change(self._tick_waker.tell, (Topic.OTHER,)))
        if self._fires:
            await self._firer.register()

    async def _leave(self) -> None:
        """Leave, unless something is still held: then the row stays, so that the process's end is seen and frees it."""
        if not await self._store.workers.leave(self.worker_id):
            log.warning("worker %s stopped with a lease or claim held, to be freed at its process end", self.worker_id)
            await self._store.workers.note(self.worker_id, STOPPED)

    def _start_loops(self, undo: AsyncExitStack) -> None:
        """Start what a worker does all the time; it ends in the order that lets every job report."""
        undo.callback(record_tasks(asyncio.get_running_loop()))
        beat = self._runtime.beat("kizami-heart", self._heart.period_seconds, self._heart.beat)
        undo.push_async_callback(asyncio.to_thread, beat.stop)
        undo.push_async_callback(_end, self._start("reporter", self._reporter))
        dispatching = self._start("dispatcher", self._dispatcher)
        undo.push_async_callback(self._dispatcher.stop)
        undo.push_async_callback(self._firer.stop)
        loops: dict[str, _Loop] = {"reaper": self._reaper, "heart": self._heart, "watch": self._watch}
        loops |= {"firer": self._firer} if self._fires else {}
        undo.push_async_callback(_end, *(self._start(name, loop) for name, loop in loops.items()))
        undo.push_async_callback(self._finish, dispatching)

    async def _finish(self, dispatching: asyncio.Task[None]) -> None:
        self._dispatcher.finish()
        await dispatching

    def _start(self, name: str, loop: _Loop) -> asyncio.Task[None]:
        loop.part.begin()
        return asyncio.create_task(self._keep(name, loop), name=f"kizami-{name}")

    async def _keep(self, name: str, loop: _Loop) -> None:
        """Run a loop again if it ever breaks: one bug must not stop a worker that still looks healthy."""
        while True:
            try:
                return await loop.run()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its traceback
                loop.part.ailing(f"the {name} broke and is started again: {error!r}", traceback=True)
                await self._runtime.clock.sleep(self._settings.poll_ms / 1000)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
