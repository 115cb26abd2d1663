"""Looks: what people ask, on a lane of their own, so many at a time and for so long, and never in the engine's way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeVar

from kizami.core.errors import StoreSlowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")
LOOK_MS: Final = 5_000
"""A look that takes longer, its wait for others included, is ended."""

LOOKS_MAX: Final = 64
"""So many looks wait or run at once; further ones are refused."""


class Looks:
    """The door to the lane of looks."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._places = threading.BoundedSemaphore(LOOKS_MAX)

    def admit(self, begin: Callable[[], Future[T]]) -> Future[T]:
        """Begin a look if there is a place. Raises StoreSlowError and what `begin` raises."""
        if not self._places.acquire(blocking=False):
            raise StoreSlowError(
                f"{LOOKS_MAX} questions to the database {self._shown} are waiting already.",
                remedy="Ask again in a moment, and less often; jobs and ticks go on meanwhile.",
            )
        try:
            future = begin()
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(lambda _: self._places.release())
        return future


def too_slow(shown: str) -> StoreSlowError:
    """Return what is said of a look that was ended."""
    return StoreSlowError(
        f"The database {shown} could not answer within {LOOK_MS // 1_000} seconds.",
        remedy="Ask for less (a filter, a smaller limit), or again in a moment; jobs and ticks go on meanwhile.",
    )
