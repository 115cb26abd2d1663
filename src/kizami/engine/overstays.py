"""Calls of users' code that go on although their job was given up: they are counted, because nothing can end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.engine.performing import RunsIn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REASONS: Final[Mapping[RunsIn, str]] = {
    "thread": "{count} threads of jobs that timed out are still running, and a thread can't be killed. No further "
    "synchronous jobs are claimed until some end. Give blocking calls a timeout of their own, or declare the performer "
    'with runs_in="process"; restarting the worker ends them.',
    "loop": "{count} async performers go on although they were cancelled. No further async jobs are claimed until some "
    "end. Let asyncio.CancelledError pass in them; restarting the worker ends them.",
}


class Overstays:
    """How many calls go on, by where they run. At `most` of a kind, no further jobs of that kind may begin."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._going_on: dict[RunsIn, set[object]] = {kind: set() for kind in REASONS}

    def begin(self, kind: RunsIn) -> Callable[[], None]:
        """Count one more; returns what ends it, from any thread and as often as one likes."""
        mark = object()
        self._going_on[kind].add(mark)
        return lambda: self._going_on[kind].discard(mark)

    def count(self, kind: RunsIn) -> int:
        """Return how many of a kind go on."""
        return len(self._going_on[kind])

    def barred(self) -> dict[RunsIn, str]:
        """Return the kinds that may not begin now, each with the reason and the remedy."""
        counts = {kind: self.count(kind) for kind in REASONS}
        return {kind: REASONS[kind].format(count=count) for kind, count in counts.items() if count >= self._most}
