"""The deadlines of all attempts of a worker, on one timer: a job costs none of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kizami.engine.attempt import Attempt
    from kizami.runtime import Clock


class Deadlines:
    """Cuts attempts off when their time is up. Deadlines are boot clock milliseconds; heartbeats move them."""

    def __init__(self, clock: Clock, running: Callable[[], Iterable[Attempt]]) -> None:
        self._clock = clock
        self._running = running
        self._next_boot: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, deadline_boot: int) -> None:
        """Look at all attempts at this deadline at the latest."""
        if self._next_boot is None or deadline_boot < self._next_boot:
            self.rest()
            self._next_boot = deadline_boot
            seconds = max(0, deadline_boot - self._clock.boot_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def rest(self) -> None:
        """Look no more: nothing is running."""
        if self._timer is not None:
            self._timer.cancel()
        self._next_boot = self._timer = None

    def _look(self) -> None:
        self.rest()
        now = self._clock.boot_ms()
        for attempt in tuple(self._running()):
            if attempt.can_be_cut:
                if attempt.deadline_boot <= now:
                    attempt.cut()
                else:
                    self.expect(attempt.deadline_boot)
