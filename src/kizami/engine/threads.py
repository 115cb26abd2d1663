"""Threads for users' synchronous code: one per call, so that a call that never returns holds up no other."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads(Executor):
    """Starts a daemon thread for each call.

    A pool would fill up with functions that don't return, and join them before the process may end; how many run at
    once is bounded by the worker's slots instead.
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
