"""Tasks that a performer leaves running: they end before its report, with a warning."""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import TYPE_CHECKING, Any

from kizami.engine.context import JobContext, current_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

log = logging.getLogger("kizami.job")


class TaskLedger:
    """Remembers which job started which task, through the loop's task factory."""

    def __init__(self) -> None:
        self._tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], JobContext] = weakref.WeakKeyDictionary()
        self._previous: Any = None

    def install(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Put the ledger before the loop's own task factory; returns what takes it out again."""
        self._previous = loop.get_task_factory()
        loop.set_task_factory(self._make)
        return lambda: loop.set_task_factory(self._previous)

    def left_by(self, context: JobContext) -> list[asyncio.Task[Any]]:
        """Return the tasks that a job started and that have not ended."""
        current = asyncio.current_task()
        return [
            task
            for task, owner in list(self._tasks.items())
            if owner is context and not task.done() and task is not current
        ]

    def _make(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        make = self._previous
        task: asyncio.Task[Any] = (
            asyncio.Task(coroutine, loop=loop, **options) if make is None else make(loop, coroutine, **options)
        )
        owner = current_or_none()
        if owner is not None:
            self._tasks[task] = owner
        return task


async def settle_stragglers(context: JobContext) -> None:
    """Cancel and await what a performer left running."""
    factory = asyncio.get_running_loop().get_task_factory()
    ledger = getattr(factory, "__self__", None)
    if not isinstance(ledger, TaskLedger):
        return
    left = ledger.left_by(context)
    if not left:
        return
    log.warning("%s left %d tasks running; they are cancelled before its report", context.job_id, len(left))
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
