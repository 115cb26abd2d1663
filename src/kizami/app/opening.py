"""Who keeps an app's store open: it is connected for the first and disconnected after the last of them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kizami.core.errors import WrongStateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kizami.store.protocol import Store


class Opening:
    """Counts who opened a store and who works on it, all on one event loop."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._opens = 0
        self._holds = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._door = threading.Lock()

    async def open(self, store: Store) -> None:
        """Connect unless that has been done, and count it. Raises StoreError, and WrongStateError on another loop."""
        self._enter()
        async with self._turn:
            try:
                await self._connect(store)
                self._opens += 1
            finally:
                self._leave()

    async def close(self, store: Store) -> None:
        """Take one `open` back, and disconnect after the last. Raises WrongStateError while others need the store."""
        if self._loop is None:
            await store.close()  # opened by somebody else, or by nobody
            return
        self._enter()
        async with self._turn:
            if not self._opens:
                raise WrongStateError(
                    f"App {self._app} is running, so it can't be closed here.",
                    remedy="Leave the `async with` block of running() or working(), which closes it.",
                )
            self._opens -= 1
            await self._disconnect(store)

    @asynccontextmanager
    async def held(self, store: Store, *, connects: bool) -> AsyncIterator[None]:
        """Keep the store open while the body runs; one that somebody else opened is left to them unless `connects`."""
        if not connects and self._loop is None:
            yield
            return
        self._enter()
        async with self._turn:
            try:
                await self._connect(store)
                self._holds += 1
            finally:
                self._leave()
        try:
            yield
        finally:
            async with self._turn:
                self._holds -= 1
                await self._disconnect(store)

    async def _connect(self, store: Store) -> None:
        if not self._opens and not self._holds:
            await store.open()

    async def _disconnect(self, store: Store) -> None:
        if not self._opens and not self._holds:
            try:
                await store.close()
            finally:
                self._leave()

    def _enter(self) -> None:
        """Bind the app to this loop, or see that it is bound to it."""
        loop = asyncio.get_running_loop()
        with self._door:
            if self._loop is None:
                self._loop, self._turn = loop, asyncio.Lock()
            elif self._loop is not loop:
                raise WrongStateError(
                    f"App {self._app} is open on another event loop.",
                    remedy="Use it on the loop that opened it (asyncio.run_coroutine_threadsafe), close it there, "
                    "or make another Kizami object for this loop.",
                )

    def _leave(self) -> None:
        """Unbind the app when nobody needs it any more."""
        with self._door:
            if not self._opens and not self._holds:
                self._loop = None
