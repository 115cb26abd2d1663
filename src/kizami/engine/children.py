"""The child processes of one worker: kept warm between jobs, renewed after some, and never more than allowed."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from kizami.engine.child import Child, ChildDiedError
from kizami.engine.threads import Call, Threads

if TYPE_CHECKING:
    from kizami.engine.performing import Work
    from kizami.engine.settings import WorkerSettings

log = logging.getLogger("kizami.worker")


class Children:
    """Hands out child processes. Event loop only; who takes one gives it back, alive or not."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._threads = Threads("kizami-child")
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
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
                if warm and isinstance(error, ChildDiedError):  # it died while it had nothing to do
                    continue
                raise
            return child

    def give_back(self, child: Child) -> None:
        """Take a process back: it stays warm unless it is dead or has done its share."""
        self._busy.discard(child)
        if self._is_stopped:
            child.kill()
        if child.is_killed:
            return
        if child.performed < self._settings.jobs_per_process and len(self._idle) < self._settings.processes:
            self._idle.append(child)
        else:
            self._threads.submit(child.stop)

    async def stop(self) -> None:
        """End all processes, those given back later too."""
        self._is_stopped = True
        for child in tuple(self._busy):
            child.kill()
        while self._idle:
            await self._threads.call(Call(self._idle.pop().stop))

    def _next(self, work: Work) -> Child:
        """Return an idle process, best one that knows the work; else a new one."""
        for child in reversed(self._idle):
            if child.has_loaded(work):
                self._idle.remove(child)
                return child
        return self._idle.pop() if self._idle else Child()
