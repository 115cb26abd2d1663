"""Reports leave in batches: whatever ended while one flush was on its way goes with the next."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kizami.core.errors import StoreError
from kizami.core.states import JobState

if TYPE_CHECKING:
    from kizami.runtime import Clock
    from kizami.store.protocol import JobStore, Report

log = logging.getLogger("kizami.worker")
RETRY_SECONDS: Final = 0.2
BATCH_MAX: Final = 500


class Reporter:
    """Records outcomes durably; one that can't be recorded is tried again, the job isn't."""

    def __init__(self, jobs: JobStore, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._queue: asyncio.Queue[tuple[Report, str, asyncio.Future[bool]]] = asyncio.Queue()

    async def report(self, report: Report, job_id: str) -> bool:
        """Record one outcome; returns when it is durable. False: the job was no longer this worker's."""
        landed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((report, job_id, landed))
        return await landed

    async def run(self) -> None:
        """Flush for ever."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < BATCH_MAX:
                batch.append(self._queue.get_nowait())
            await self._flush(batch)

    async def _flush(self, batch: list[tuple[Report, str, asyncio.Future[bool]]]) -> None:
        answers = await self._record([report for report, _, _ in batch])
        for (report, job_id, landed), answer in zip(batch, answers, strict=True):
            _tell(report, job_id, answer=answer)
            if not landed.done():
                landed.set_result(answer)

    async def _record(self, reports: list[Report]) -> tuple[bool, ...]:
        while True:
            try:
                return await self._jobs.report(reports)
            except StoreError as error:
                log.warning("%d outcomes can't be recorded yet: %s", len(reports), error)
                await self._clock.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("an outcome of %d was refused, they are recorded one by one", len(reports))
                return tuple([await self._record_alone(report) for report in reports])

    async def _record_alone(self, report: Report) -> bool:
        while True:
            try:
                return (await self._jobs.report([report]))[0]
            except StoreError as error:
                log.warning("an outcome can't be recorded yet: %s", error)
                await self._clock.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("the outcome %s of claim %d was refused", report.state, report.claim)
                return False


def _tell(report: Report, job_id: str, *, answer: bool) -> None:
    if not answer:
        log.warning("late answer ignored: %s is no longer this worker's", job_id)
    elif report.state in (JobState.FAILED, JobState.STALLED):
        log.error("%s is %s: %s", job_id, report.state, report.error)
