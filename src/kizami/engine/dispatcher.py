"""Claims jobs up to the free slots and runs an attempt for each."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from kizami.core.errors import StoreError
from kizami.engine.attempt import Attempt
from kizami.engine.crew import Crew
from kizami.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kizami.engine.performing import Performing, RunsIn
    from kizami.engine.reporter import Reporter
    from kizami.engine.station import Station
    from kizami.engine.waker import Waker
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.worker")


class Dispatcher:
    """One worker's slots."""

    def __init__(
        self, station: Station, performers: Mapping[str, Performing], reporter: Reporter, waker: Waker
    ) -> None:
        self._station = station
        self._jobs = station.store.jobs
        self._settings = station.settings
        self._performers = performers
        self._reporter = reporter
        self._waker = waker
        self._crew = Crew.of(station)
        self._barred: tuple[RunsIn, ...] = ()
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
        await self._crew.children.stop()

    async def _fill(self) -> int:
        """Claim what fits; return how long to wait (ms) when there is nothing more to claim now."""
        await self._tell_of_overstays()
        claims = tuple(self._claims())
        if not claims:
            return self._settings.poll_ms
        bindings = tuple(sorted(binding for claim in claims for binding in claim.bindings))
        horizon = await self._jobs.horizon(self._station.app, bindings)
        if not horizon.ready:
            wake_in = self._settings.poll_ms if horizon.wake_at is None else horizon.wake_at - horizon.now
            return max(1, min(self._settings.poll_ms, wake_in))
        begun = [await self._take(claim) for claim in claims]
        return 0 if any(begun) else self._settings.poll_ms

    @property
    def _slots(self) -> int:
        return self._settings.concurrency - len(self._attempts)

    def _claims(self) -> Iterator[Claim]:
        """Yield what to ask for: jobs for free processes, then jobs of all other kinds that are not barred."""
        processes = self._settings.processes - sum(each.way == "process" for each in self._attempts)
        kinds: tuple[tuple[tuple[RunsIn, ...], int], ...] = (
            (("process",), min(self._slots, processes)),
            (("loop", "thread"), self._slots),
        )
        for ways, limit in kinds:
            open_ways = [way for way in ways if way not in self._barred]
            bindings = tuple(
                name for name, each in sorted(self._performers.items()) if self._crew.way_of(each) in open_ways
            )
            if bindings and limit > 0:
                yield Claim(self._station.app, self._station.worker_id, bindings, limit)

    async def _take(self, claim: Claim) -> bool:
        claimed = await self._jobs.claim(replace(claim, limit=min(claim.limit, self._slots))) if self._slots > 0 else ()
        for job in claimed:
            self._begin(job)
        return bool(claimed)

    def _begin(self, job: ClaimedJob) -> None:
        loop = asyncio.get_running_loop()
        attempt = Attempt(job, self._performers[job.binding], self._station, self._crew, loop)
        self._attempts[attempt] = asyncio.create_task(self._see_through(attempt), name=f"kizami-job {job.job_id}")

    async def _see_through(self, attempt: Attempt) -> None:
        try:
            report = await attempt.run()
            if report is not None:
                await self._reporter.report(report, attempt.job.job_id)
        finally:
            del self._attempts[attempt]
            self._waker.wake()

    async def _tell_of_overstays(self) -> None:
        """Bar the kinds of jobs of which too many go on, and say so: in the log, and in the worker's row."""
        barred = self._crew.overstays.barred()
        if tuple(barred) == self._barred:
            return
        for way in [way for way in barred if way not in self._barred]:
            log.error("%s", barred[way])
        for way in [way for way in self._barred if way not in barred]:
            log.warning("jobs that run in a %s are claimed again", way)
        self._barred = tuple(barred)
        await self._station.store.workers.note(self._station.worker_id, " ".join(barred.values()) or None)
