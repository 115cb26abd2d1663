"""Tasks that a performer leaves running: they end before its report, with a warning."""

from __future__ import annotations

import asyncio
import logging
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

from kizami.engine.context import JobContext, current_or_none, job_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

log = logging.getLogger("kizami.job")
ROUNDS_MAX: Final = 3
"""How often new tasks, started by those that were cancelled, are cancelled too."""


class TaskRecorder:
    """A task factory that notes with each job which tasks it started, and otherwise does what the one before it does.

    All workers on a loop share one, which leaves with the last of them, unless another factory was put over it
    meanwhile: that one stays, and this one goes on beneath it without doing harm.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.workers = 0

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        """Make the task."""
        make = self.inner
        task: asyncio.Task[Any] = (
            asyncio.Task(coroutine, loop=loop, **options) if make is None else make(loop, coroutine, **options)
        )
        owner = current_or_none()
        if owner is not None:
            if owner.tasks is None:
                owner.tasks = weakref.WeakSet()
            owner.tasks.add(task)
        return task


def record_tasks(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Note from now on which job starts which task; returns what ends it, in whatever order workers stop."""
    found = loop.get_task_factory()
    recorder = found if isinstance(found, TaskRecorder) else TaskRecorder(found)
    if recorder is not found:
        loop.set_task_factory(recorder)
    recorder.workers += 1

    def end() -> None:
        recorder.workers -= 1
        if recorder.workers == 0 and loop.get_task_factory() is recorder:
            loop.set_task_factory(recorder.inner)

    return end


def may_have_left(context: JobContext, loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a job may have left tasks running: it started some, or nobody noted which."""
    return context.tasks is not None or not isinstance(loop.get_task_factory(), TaskRecorder)


async def settle_stragglers(context: JobContext, seconds: float, give_up: Callable[[asyncio.Task[Any]], None]) -> None:
    """Cancel what a performer left running and await it for so long; `give_up` is called for what still goes on."""
    for _ in range(ROUNDS_MAX):
        left = _left_by(context)
        if not left:
            return
        log.warning("%s left %d tasks running; they are cancelled before its report", context.job_id, len(left))
        for task in left:
            task.cancel()
        try:
            _, stubborn = await asyncio.wait(left, timeout=seconds)
        finally:
            for task in left:
                if not task.done():
                    give_up(task)
        if stubborn:
            return


def _left_by(context: JobContext) -> list[asyncio.Task[Any]]:
    current = asyncio.current_task()
    return [task for task in _started_by(context) if not task.done() and task is not current]


def _started_by(context: JobContext) -> list[asyncio.Task[Any]]:
    recorded = isinstance(asyncio.get_running_loop().get_task_factory(), TaskRecorder)
    if sys.version_info >= (3, 12) and not recorded:  # another factory was put over ours: look at every task
        return [task for task in asyncio.all_tasks() if job_of(task.get_context()) is context]
    return list(context.tasks or ())
