"""Threads for users' synchronous code: one per call, so that a call that never returns holds up no other."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads(Executor):
    """Starts a daemon thread for each call.

    A pool would fill up with functions that don't return, and join them before the process may end; how many run at
    once is bounded by who calls: by the worker's slots, and by the limit on calls that overstay.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function in a thread; the future has its answer."""
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()

        def run() -> None:
            try:
                answer.set_result(function(*args, **kwargs))
            except StopIteration as error:
                answer.set_exception(RuntimeError(f"the function raised {error!r}"))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's answer
                answer.set_exception(error)

        threading.Thread(target=run, name=self._name, daemon=True).start()
        return answer

    async def call(self, call: Call[T]) -> T:
        """Make the call in a thread and await its answer."""
        return await asyncio.get_running_loop().run_in_executor(self, call)


class Call(Generic[T]):
    """One call, to be made in a thread, that sees the context variables of whoever made this object."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._context = copy_context()
        self._lock = threading.Lock()
        self._given_up = self._begun = self._ended = False
        self._on_end: Callable[[], None] | None = None

    def __call__(self) -> T:
        """Call the function, unless the call was given up before it began. Runs in the thread."""
        with self._lock:
            if self._given_up:
                raise asyncio.CancelledError
            self._begun = True
        try:
            return self._context.run(self._function)
        finally:
            with self._lock:
                self._ended = True
            if self._on_end is not None:
                self._on_end()

    def give_up(self, on_end: Callable[[], None]) -> bool:
        """Wait no longer; tell whether the function goes on. If so, `on_end` is called, in its thread, when it ends."""
        with self._lock:
            self._given_up = True
            goes_on = self._begun and not self._ended
            self._on_end = on_end if goes_on else None
            return goes_on
