"""Waiting for something to do: a wake-up, or a bounded time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.runtime import Clock


class Waker:
    """An event with a bounded wait; wake-ups between two looks count as one."""

    def __init__(self, clock: Clock) -> None:
        self._has_news = False
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        """End the present or the next wait. Event loop only."""
        self._event.set()

    def tell(self) -> None:
        """Wake because somebody changed what is stored. Event loop only."""
        self._has_news = True
        self._event.set()

    def clear(self) -> bool:
        """Begin a look: what comes after this call ends the next wait. Tell whether there is news since the last."""
        self._event.clear()
        news, self._has_news = self._has_news, False
        return news

    async def wait(self, at_most_ms: int) -> None:
        """Wait for a wake-up, at most that long."""
        waiting = asyncio.ensure_future(self._event.wait())
        timer = asyncio.ensure_future(self._clock.sleep(at_most_ms / 1000))
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
