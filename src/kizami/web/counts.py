"""Counts of jobs that many may ask for at once: made once, and kept for longer the longer they took."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kizami.core.states import JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kizami.app.app import Kizami
    from kizami.core.times import EpochMs

_KEPT_TIMES: Final = 10


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs are in each state, per binding, as of `at`."""

    at: EpochMs
    bindings: Mapping[str, Mapping[JobState, int]]

    @property
    def total(self) -> dict[JobState, int]:
        """Return how many jobs of all bindings are in each state, those in which there are none too."""
        total = Counter(dict.fromkeys(JobState, 0))
        for counts in self.bindings.values():
            total.update(counts)
        return dict(total)


class Counts:
    """Counts an app's jobs. Live pages never keep the database busy for more than a tenth of the time with it."""

    def __init__(self, app: Kizami) -> None:
        self._app = app
        self._one_at_a_time = asyncio.Lock()
        self._counted: JobCounts | None = None
        self._kept_until_boot = 0

    async def jobs(self) -> JobCounts:
        """Return a count that is fresh in proportion to what it costs. Raises StoreError."""
        async with self._one_at_a_time:
            clock = self._app.runtime.clock
            began = clock.boot_ms()
            if self._counted is not None and began < self._kept_until_boot:
                return self._counted
            at = await self._app.store.schedules.now()
            self._counted = JobCounts(at, await self._app.jobs.count_by_state())
            ended = clock.boot_ms()
            self._kept_until_boot = ended + _KEPT_TIMES * (ended - began)
            return self._counted
