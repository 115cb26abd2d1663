"""An open store belongs to the event loop that opened it: its wake-ups, watchers and answers are made there."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from kizami.core.errors import WrongStateError

CLOSED_REMEDY: Final = (
    "Open it first: `async with app.running():`, with worker=False to do no jobs here; or `await app.open()`."
)


class Ownership:
    """Which event loop an open store belongs to; one that isn't open, or was opened without a loop, belongs to none."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door = threading.Lock()

    def take(self) -> None:
        """Make the store this loop's. Raises WrongStateError when it is open already."""
        with self._door:
            if self._loop is not None:
                raise WrongStateError(
                    f"The database {self._shown} is open already.",
                    remedy="Open a store once; an app's `open` and `running` may be called again and count it.",
                )
            self._loop = asyncio.get_running_loop()

    def release(self) -> None:
        """Give the store back."""
        self._loop = None

    def require(self) -> None:
        """Raise WrongStateError on any other loop."""
        if self._loop is not None and asyncio.get_running_loop() is not self._loop:
            raise WrongStateError(
                f"The database {self._shown} belongs to the event loop that opened it, and was used on another.",
                remedy="Hand the call to that loop (asyncio.run_coroutine_threadsafe), or make another Kizami object "
                "for this one.",
            )
