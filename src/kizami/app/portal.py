"""An event loop on a thread of its own, for those who have none: it opens a store there and closes it at the end."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from kizami.core.errors import WrongStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kizami.store.protocol import Store

R = TypeVar("R")


class Portal:
    """A store that any thread may use; it is opened at the first call and closed by `close`, at the latest at exit."""

    def __init__(self, app: str, make_store: Callable[[], Store]) -> None:
        self._app = app
        self._make_store = make_store
        self._door = threading.Lock()
        self._process: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """Return the store, which may not be open."""
        self.require_here()
        with self._door:
            return self._made()

    def run(self, work: Callable[[Store], Coroutine[Any, Any, R]]) -> R:
        """Run work with the open store and wait for it. Raises what it raises, StoreError, WrongStateError."""
        self.require_here()
        with self._door:
            store = self._made()
            loop = self._loop or self._started(store)
            future = asyncio.run_coroutine_threadsafe(work(store), loop)
        return future.result()

    def require_here(self) -> None:
        """Raise WrongStateError where waiting would do harm: on an event loop, or in a fork of the opener."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise WrongStateError(
                f"A blocking call of app {self._app} would stop the event loop that runs on this thread.",
                remedy="Await the same method of the app, or call this one through asyncio.to_thread.",
            )
        if self._process is not None and self._process != os.getpid():
            raise WrongStateError(
                f"App {self._app} was opened for blocking calls in process {self._process}, of which this one is a"
                " fork: its connections can't be shared.",
                remedy="Make the first blocking call after the fork, or close() before it.",
            )

    def close(self) -> None:
        """Finish what was begun and disconnect; the next call opens again. In a fork of the opener: nothing."""
        if self._process not in (None, os.getpid()):
            return
        with self._door:
            loop, thread, store = self._loop, self._thread, self._store
            self._loop = self._thread = self._store = self._process = None
            if loop is None or thread is None or store is None:
                return
            atexit.unregister(self.close)
            try:
                asyncio.run_coroutine_threadsafe(store.close(), loop).result()
            finally:
                _end(loop, thread)

    def _made(self) -> Store:
        if self._store is None:
            self._store = self._make_store()
        return self._store

    def _started(self, store: Store) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_AtOnce())
        thread = threading.Thread(target=loop.run_forever, name="kizami-blocking", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(store.open(), loop).result()
        except BaseException:
            _end(loop, thread)
            raise
        self._loop, self._thread, self._process = loop, thread, os.getpid()
        atexit.register(self.close)
        return loop


class _AtOnce(ThreadPoolExecutor):
    """Runs what it is given at once: opening and closing may hold this loop, and at exit no thread can be started."""

    def submit(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Run a function and return its end."""
        future: Future[R] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
            future.set_exception(error)
        return future


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
