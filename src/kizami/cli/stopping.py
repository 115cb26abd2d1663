"""SIGTERM and SIGINT: the first stops gracefully, the second at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("kizami.cli")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_KILLED = 128


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that the first signal sets; a second one ends the process with 128 + its number."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _on_signal, number, stop)
    try:
        yield stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def _on_signal(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        log.warning("%s again: stopping at once; what was running is taken over by the next worker", number.name)
        os._exit(_KILLED + number)
    log.info("%s: stopping; a second signal stops at once", number.name)
    stop.set()
