"""Claims jobs up to the free slots and runs an attempt for each."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kizami.core.errors import StoreError
from kizami.core.options import Guarantee
from kizami.engine.attempt import Attempt
from kizami.engine.crew import Crew
from kizami.engine.deadlines import Deadlines
from kizami.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kizami.engine.performing import Performing, RunsIn
    from kizami.engine.reporter import Reporter
    from kizami.engine.station import Station
    from kizami.engine.waker import Waker
    from kizami.store.protocol import ClaimedJob, Report

log = logging.getLogger("kizami.worker")


class Dispatcher:
    """One worker's slots."""

    def __init__(
        self, station: Station, performers: Mapping[str, Performing], reporter: Reporter, waker: Waker
    ) -> None:
        self.part = station.condition.part("dispatcher", station.settings.poll_ms)
        self._station = station
        self._jobs = station.store.jobs
        self._settings = station.settings
        self._performers = performers
        self._reporter = reporter
        self._waker = waker
        self._crew = Crew.of(station)
        self._barred: dict[RunsIn, str] = {}
        self._finishing = False
        self._is_flowing = False
        self._running: dict[Attempt, None] = {}
        self._reported: dict[Attempt, None] = {}
        self._deadlines = Deadlines(station.runtime.clock, lambda: self._running)
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Return what is being performed or reported now; safe to call from another thread."""
        return (*tuple(self._running), *tuple(self._reported))

    @property
    def bars(self) -> tuple[str, ...]:
        """Return why jobs of some kinds are not claimed now."""
        return tuple(self._barred.values())

    async def run(self) -> None:
        """Claim and start jobs until `finish`; a failing store is tried again."""
        while not self._finishing:
            self._is_flowing = self._waker.clear() or self._is_flowing
            wait_ms = self._settings.poll_ms
            try:
                wait_ms = await self._fill()
                self.part.well()
            except StoreError as error:
                self.part.ailing(f"jobs can't be claimed now: {error}")
            if wait_ms > 0 and not self._finishing:
                await self._waker.wait(wait_ms)

    def finish(self) -> None:
        """Claim nothing more. A claim on its way is not broken off: what it takes would be nobody's."""
        self._finishing = True
        self._waker.wake()

    async def stop(self) -> None:
        """Let running jobs end within the grace time, then hand back what is unfinished."""
        await self._emptied()
        for attempt in tuple(self._running):
            attempt.break_off()
        await self._emptied()
        self._tell_of_unrecorded()
        await self._crew.children.stop()

    def _tell_of_unrecorded(self) -> None:
        """Name the jobs whose end is known here alone, and what becomes of them: the store was away until the last."""
        for attempt in self._reported:
            once = attempt.job.options.guarantee is Guarantee.AT_MOST_ONCE
            log.error(
                "%s has ended, but its outcome could not be recorded before the stop: %s",
                attempt.job.job_id,
                "it will be STALLED, though it is done" if once else "it will run again",
            )

    async def _emptied(self) -> None:
        """Wait until every job has ended and its report has landed, at most for the grace time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_ms / 1000):
                await self._empty.wait()

    async def _fill(self) -> int:
        """Claim what fits; return how long to wait (ms) when there is nothing more to claim now."""
        self._tell_of_overstays()
        claims = tuple(self._claims())
        if not claims:
            return self._settings.poll_ms
        if not self._is_flowing and (wait_ms := await self._wait_ms(claims)) > 0:
            return wait_ms
        begun = [await self._take(claim) for claim in claims]
        was_flowing, self._is_flowing = self._is_flowing, any(begun)
        return 0 if self._is_flowing or was_flowing else self._settings.poll_ms

    async def _wait_ms(self, claims: tuple[Claim, ...]) -> int:
        """Return how long there is nothing to claim; only reads. While jobs flow or are new, a claim tells as much."""
        bindings = tuple(sorted(binding for claim in claims for binding in claim.bindings))
        horizon = await self._jobs.horizon(self._station.app, bindings)
        if horizon.ready:
            return 0
        wake_in = self._settings.poll_ms if horizon.wake_at is None else horizon.wake_at - horizon.now
        return max(1, min(self._settings.poll_ms, wake_in))

    @property
    def _slots(self) -> int:
        """Return how many jobs may be claimed: one whose report is on its way no longer takes a slot.

        Its report and the next claim can so share a commit. Unless reports don't land: then nothing new is begun.
        """
        most = self._settings.concurrency
        return min(most - len(self._running), 2 * most - len(self._running) - len(self._reported))

    def _claims(self) -> Iterator[Claim]:
        """Yield what to ask for: jobs for free processes, then jobs of all other kinds that are not barred."""
        processes = self._settings.processes - sum(each.way == "process" for each in self._running)
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
        performer = self._performers[job.binding]
        attempt = Attempt(job, performer, self._station, self._crew, loop, self._deadlines, self._end)
        self._running[attempt] = None
        self._empty.clear()
        attempt.begin()

    def _end(self, attempt: Attempt, report: Report | None) -> None:
        if report is not None:
            self._reported[attempt] = None
            self._reporter.add(report, attempt.job.job_id, partial(self._landed, attempt))
        del self._running[attempt]
        self._tell_if_empty()
        self._waker.wake()

    def _landed(self, attempt: Attempt) -> None:
        del self._reported[attempt]
        self._tell_if_empty()
        self._waker.wake()

    def _tell_if_empty(self) -> None:
        if not self._running:
            self._deadlines.rest()
            if not self._reported:
                self._empty.set()

    def _tell_of_overstays(self) -> None:
        """Bar the kinds of jobs of which too many go on, and say so."""
        barred = self._crew.overstays.barred()
        for way in [way for way in barred if way not in self._barred]:
            log.error("%s", barred[way])
        for way in [way for way in self._barred if way not in barred]:
            log.warning("jobs that run in a %s are claimed again", way)
        self._barred = barred
