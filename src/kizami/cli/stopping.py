"""SIGTERM and SIGINT: the first stops gracefully, a later one at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger("kizami.cli")
SAME_SECONDS: Final = 0.5
"""Signals this close to the first are the same wish: terminals, process groups and supervisors deliver it twice."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_KILLED: Final = 128


class Stopping:
    """What the signals of one process mean. `now` is a clock in seconds that is never set."""

    def __init__(self, now: Callable[[], float], end: Callable[[int], object] = os._exit) -> None:
        self.stop = asyncio.Event()
        self._now = now
        self._end = end
        self._first: float | None = None

    def on_signal(self, number: signal.Signals) -> None:
        """Stop gracefully at the first signal; at a later one end the process with 128 + its number."""
        if self._first is None:
            self._first = self._now()
            log.info("%s: stopping; a second signal stops at once", number.name)
            self.stop.set()
        elif self._now() - self._first >= SAME_SECONDS:
            log.warning("%s again: stopping at once; what was running is taken over by the next worker", number.name)
            self._end(_KILLED + number)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that the first signal sets; a later one ends the process with 128 + its number."""
    loop = asyncio.get_running_loop()
    stopping = Stopping(loop.time)
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopping.on_signal, number)
    try:
        yield stopping.stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
