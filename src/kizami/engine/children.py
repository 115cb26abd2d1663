"""The child processes of one worker: kept warm between jobs, renewed after some, and never more than allowed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from kizami.engine.child import Child, ChildDiedError
from kizami.engine.spawn import refuse_in_a_starting_child
from kizami.engine.threads import Call, Threads

if TYPE_CHECKING:
    from concurrent.futures import Future

    from kizami.engine.performing import Work
    from kizami.engine.settings import WorkerSettings


class Children:
    """Hands out child processes. Event loop only; who takes one gives it back, alive or not."""

    def __init__(self, settings: WorkerSettings) -> None:
        refuse_in_a_starting_child()
        self._settings = settings
        self._threads = Threads("kizami-child")
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._leaving: set[Future[None]] = set()
        self._is_stopped = False

    async def take(self, work: Work) -> Child:
        """Return a process that is ready for some work. Raises ChildFailedError and ChildDiedError."""
        while True:
            warm = bool(self._idle)
            child = self._next(work)
            self._busy.add(child)
            try:
                await self._threads.call(Call(partial(child.load, work)))
            except BaseException as error:
                child.kill()
                self.give_back(child)
                if (
                    warm and isinstance(error, ChildDiedError) and not self._is_stopped
                ):  # it died while it had nothing to do
                    continue
                raise
            return child

    def give_back(self, child: Child) -> None:
        """Take a process back: it stays warm unless it is dead or has done its share."""
        self._busy.discard(child)
        is_worn = child.is_killed or child.performed >= self._settings.jobs_per_process
        if self._is_stopped or is_worn or len(self._idle) >= self._settings.processes:
            self._let_go(child)
        else:
            self._idle.append(child)

    async def stop(self) -> None:
        """End all processes, those given back later too."""
        self._is_stopped = True
        for child in tuple(self._busy):
            child.kill()
        while self._idle:
            self._let_go(self._idle.pop())
        await asyncio.gather(*map(asyncio.wrap_future, tuple(self._leaving)), return_exceptions=True)

    def _let_go(self, child: Child) -> None:
        """Bury a process in a thread, once it has ended by itself or been killed."""
        leaving = self._threads.submit(child.stop)
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _next(self, work: Work) -> Child:
        """Return an idle process, best one that knows the work; else a new one."""
        for child in reversed(self._idle):
            if child.has_loaded(work):
                self._idle.remove(child)
                return child
        return self._idle.pop() if self._idle else Child()
