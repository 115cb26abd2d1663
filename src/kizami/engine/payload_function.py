"""A schedule's payload function, as the engine calls it: with a limit, and never more calls at once than stay harmless.

A thread can't be killed. A function that doesn't return within its limit goes on, and until it ends the ticks of its
schedule are refused: so a broken one costs one thread, not one at every tick.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from kizami.core.errors import FireRefusedError
from kizami.engine.threads import call_apart

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("kizami.scheduler")
CALLS_MAX: Final = 8
"""How many calls of one function may go on at once: a tick's, and those of people who fire by hand."""


@dataclass(slots=True, eq=False)
class PayloadFunction:
    """One schedule's function; `call` gets the tick's time and whether somebody fires by hand."""

    schedule: str
    call: Callable[[int, bool], object]
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _going_on: int = 0
    _overstaying: int = 0

    async def answer(self, scheduled_at: int, limit_ms: int, *, manual: bool) -> object:
        """Return what the function answers, sync or async, without a moment of it on this event loop.

        Raises FireRefusedError when it is asked too often or takes longer than the limit, and what it raises.
        """
        self._begin()
        asked = partial(self.call, scheduled_at, manual)
        try:
            return await call_apart(
                asked,
                name="kizami-payload",
                limit_ms=limit_ms,
                on_overstay=self._overstay,
                on_end=self._end_overstay,
            )
        except TimeoutError as error:
            if str(error):  # its own
                raise
            raise self._refusal(f"took longer than {limit_ms} ms", "Give what it waits for a timeout.") from error
        finally:
            with self._lock:
                self._going_on -= 1

    def _begin(self) -> None:
        with self._lock:
            if self._overstaying:
                raise self._refusal(
                    "is still running from an earlier tick, and a thread can't be killed",
                    "Give what it waits for a timeout; restarting the worker ends it.",
                )
            if self._going_on >= CALLS_MAX:
                raise self._refusal(f"is running {CALLS_MAX} times already", "Fire again when one has ended.")
            self._going_on += 1

    def _overstay(self) -> None:
        """Note a call that goes on after its limit."""
        with self._lock:
            self._overstaying += 1
        told = "the payload function of %s goes on after its limit; ticks of %s are refused until it ends"
        log.error(told, self.schedule, self.schedule)

    def _end_overstay(self) -> None:
        """Note its end, from its thread."""
        with self._lock:
            self._overstaying -= 1
        log.warning("the payload function of %s has ended; %s fires again", self.schedule, self.schedule)

    def _refusal(self, why: str, remedy: str) -> FireRefusedError:
        return FireRefusedError(
            f"The payload function of {self.schedule} {why}.", remedy=remedy, schedule=self.schedule
        )
