"""Reports leave in batches: whatever ended while one flush was on its way goes with the next."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from kizami.core.errors import StoreError
from kizami.core.states import JobState

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.engine.station import Station
    from kizami.store.protocol import Report

log = logging.getLogger("kizami.worker")
RETRY_SECONDS: Final = 0.2
BATCH_MAX: Final = 500


class _Outcome(NamedTuple):
    report: Report
    job_id: str
    on_landed: Callable[[], None]


class Reporter:
    """Records outcomes durably; one that can't be recorded is tried again, the job isn't."""

    def __init__(self, station: Station) -> None:
        self.part = station.condition.part("reporter")
        self._jobs = station.store.jobs
        self._clock = station.runtime.clock
        self._waiting: list[_Outcome] = []
        self._some = asyncio.Event()

    def add(self, report: Report, job_id: str, on_landed: Callable[[], None]) -> None:
        """Record an outcome; `on_landed` is called when it is durable, or when the job is no longer this worker's."""
        self._waiting.append(_Outcome(report, job_id, on_landed))
        self._some.set()

    async def run(self) -> None:
        """Flush for ever."""
        while True:
            await self._some.wait()
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            if not self._waiting:
                self._some.clear()
            await self._flush(batch)

    async def _flush(self, batch: list[_Outcome]) -> None:
        answers = await self._record([outcome.report for outcome in batch])
        self.part.well()
        for outcome, answer in zip(batch, answers, strict=True):
            _tell(outcome.report, outcome.job_id, answer=answer)
            outcome.on_landed()

    async def _record(self, reports: list[Report]) -> tuple[bool, ...]:
        while True:
            try:
                return await self._jobs.report(reports)
            except StoreError as error:
                self.part.ailing(f"{len(reports)} outcomes can't be recorded yet: {error}")
                await self._clock.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("an outcome of %d was refused, they are recorded one by one", len(reports))
                return tuple([await self._record_alone(report) for report in reports])

    async def _record_alone(self, report: Report) -> bool:
        while True:
            try:
                return (await self._jobs.report([report]))[0]
            except StoreError as error:
                self.part.ailing(f"an outcome can't be recorded yet: {error}")
                await self._clock.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("the outcome %s of claim %d was refused", report.state, report.claim)
                return False


def _tell(report: Report, job_id: str, *, answer: bool) -> None:
    if not answer:
        log.warning("late answer ignored: %s is no longer this worker's", job_id)
    elif report.state in (JobState.FAILED, JobState.STALLED):
        log.error("%s is %s: %s", job_id, report.state, report.error)
