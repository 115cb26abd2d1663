"""Claims jobs up to the free slots and runs an attempt for each."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kizami.core.errors import StoreError
from kizami.engine.attempt import Attempt
from kizami.engine.threads import Threads
from kizami.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kizami.engine.performing import Performing
    from kizami.engine.reporter import Reporter
    from kizami.engine.station import Station
    from kizami.engine.waker import Waker
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.worker")


class Dispatcher:
    """One worker's slots."""

    def __init__(
        self,
        station: Station,
        performers: Mapping[str, Performing],
        reporter: Reporter,
        waker: Waker,
    ) -> None:
        self._station = station
        self._jobs = station.store.jobs
        self._settings = station.settings
        self._performers = performers
        self._reporter = reporter
        self._waker = waker
        self._bindings = tuple(sorted(performers))
        self._threads = Threads("kizami-job")
        self._finishing = False
        self._attempts: dict[Attempt, asyncio.Task[None]] = {}

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Return what is being performed now; safe to call from another thread."""
        return tuple(self._attempts)

    async def run(self) -> None:
        """Claim and start jobs until `finish`; a failing store is tried again."""
        while not self._finishing:
            self._waker.clear()
            wait_ms = self._settings.poll_ms
            try:
                wait_ms = await self._fill()
            except StoreError as error:
                log.warning("jobs can't be claimed now: %s", error)
            if wait_ms > 0 and not self._finishing:
                await self._waker.wait(wait_ms)

    def finish(self) -> None:
        """Claim nothing more. A claim on its way is not broken off: what it takes would be nobody's."""
        self._finishing = True
        self._waker.wake()

    async def stop(self) -> None:
        """Let running jobs end within the grace time, then hand back what is unfinished."""
        if self._attempts:
            await asyncio.wait(self._attempts.values(), timeout=self._settings.stop_ms / 1000)
        for attempt in self.attempts:
            attempt.break_off()
        if self._attempts:
            await asyncio.wait(self._attempts.values(), timeout=self._settings.stop_ms / 1000)

    async def _fill(self) -> int:
        """Claim what fits; return how long to wait (ms) when there is nothing more to claim now."""
        free = self._settings.concurrency - len(self._attempts)
        if free <= 0:
            return self._settings.poll_ms
        horizon = await self._jobs.horizon(self._station.app, self._bindings)
        if not horizon.ready:
            due_in = self._settings.poll_ms if horizon.next_due_at is None else horizon.next_due_at - horizon.now
            return max(1, min(self._settings.poll_ms, due_in))
        claim = Claim(self._station.app, self._station.worker_id, self._bindings, free, self._settings.grace_ms)
        claimed = await self._jobs.claim(claim)
        for job in claimed:
            self._begin(job)
        return 0 if claimed else self._settings.poll_ms

    def _begin(self, job: ClaimedJob) -> None:
        attempt = Attempt(job, self._performers[job.binding], self._station, self._threads, asyncio.get_running_loop())
        self._attempts[attempt] = asyncio.create_task(self._see_through(attempt), name=f"kizami-job {job.job_id}")

    async def _see_through(self, attempt: Attempt) -> None:
        try:
            report = await attempt.run()
            if report is not None:
                await self._reporter.report(report, attempt.job.job_id)
        finally:
            del self._attempts[attempt]
            self._waker.wake()
