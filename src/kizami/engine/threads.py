"""Threads for users' code: one per call, so that a call that never returns holds up no other."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
            except (StopIteration, GeneratorExit) as error:  # no coroutine survives to be told
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


async def call_apart(
    function: Callable[[], object],
    *,
    name: str,
    limit_ms: int,
    on_overstay: Callable[[], None],
    on_end: Callable[[], None],
) -> object:
    """Return what a function answers, sync or async, without a moment of it on this event loop.

    It runs in a thread; an awaitable that it returns is awaited there, on a loop of its own, cancelled at the limit.
    Raises TimeoutError. A thread that goes on after that, or after the caller was cancelled, can only be left alone:
    `on_overstay` is called, and `on_end`, in that thread, when it has ended.
    """
    loop, thread = asyncio.get_running_loop(), _ThreadWithLoop(name, limit_ms)
    try:
        async with asyncio.timeout(limit_ms / 1000):
            answer = await loop.run_in_executor(thread, function)
            # A virtual world's loop asks no executor: there the awaitable comes back, to be awaited in virtual time.
            return await answer if inspect.isawaitable(answer) else answer
    except (TimeoutError, asyncio.CancelledError):
        if thread.made is not None and thread.made.give_up(on_end):
            on_overstay()
        raise


class _ThreadWithLoop(Threads):
    """A thread for one call, which also awaits what that returns."""

    def __init__(self, name: str, limit_ms: int) -> None:
        super().__init__(name)
        self.made: Call[Any] | None = None
        self._limit_ms = limit_ms

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function in a thread; the future has its answer."""
        call = self.made = Call(partial(self._answer, function, *args, **kwargs))
        return super().submit(call)

    def _answer(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        try:
            answer = function(*args, **kwargs)
            return asyncio.run(_awaited(answer, self._limit_ms)) if inspect.isawaitable(answer) else answer
        except Exception:
            raise
        except BaseException as error:  # an exit or a cancellation of the function is not one of whoever awaits it
            raise RuntimeError(f"the function raised {error!r}") from error


async def _awaited(awaitable: Awaitable[T], limit_ms: int) -> T:
    async with asyncio.timeout(limit_ms / 1000):
        return await awaitable
