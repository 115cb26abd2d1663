"""What people do with jobs, on an open app."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kizami.core.options import EnqueueChanges, split_enqueue
from kizami.core.states import ENDED
from kizami.core.times import to_ms
from kizami.store.protocol import Bulk, BulkOperation, JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from kizami.core.states import JobState
    from kizami.runtime import Clock
    from kizami.store.protocol import BulkAnswer, Job, JobPage, JobStore

_ASK_MS: Final = 250


class Jobs:
    """An app's jobs."""

    def __init__(self, app: str, store: JobStore, clock: Clock) -> None:
        self._app = app
        self._store = store
        self._clock = clock

    async def get(self, job_id: str) -> Job | None:
        """Return a job with its attempt log. Raises InvalidInputError when it isn't a job id."""
        return await self._store.get(self._app, job_id)

    async def wait(self, job_id: str, *, timeout: timedelta | None = None) -> Job | None:  # noqa: ASYNC109 - not an error
        """Return the job once it has ended, whichever process performs it, or as it is when the time is up.

        None: retention has removed it. Raises InvalidInputError when it isn't a job id.
        """
        until_ms = None if timeout is None else self._clock.boot_ms() + to_ms(timeout, name="timeout", least_ms=0)
        while True:
            job = await self.get(job_id)
            left_ms = _ASK_MS if until_ms is None else until_ms - self._clock.boot_ms()
            if job is None or job.state in ENDED or left_ms <= 0:
                return job
            await self._clock.sleep(min(_ASK_MS, left_ms) / 1_000)

    async def list(self, wanted: JobFilter) -> JobPage:
        """Return a page of this app's jobs, newest first."""
        return await self._store.list(replace(wanted, app=self._app))

    async def retry(self, job_id: str) -> None:
        """Schedule a FAILED or STALLED job again, with max_attempts more. Raises NotFoundError, WrongStateError."""
        await self._store.retry(self._app, job_id)

    async def cancel(self, job_id: str) -> None:
        """Cancel a SCHEDULED job. Raises NotFoundError, WrongStateError."""
        await self._store.cancel(self._app, job_id)

    async def reschedule(self, job_id: str, *, delay: timedelta | None = None, run_at: datetime | None = None) -> None:
        """Move a SCHEDULED job to another due time; without one, to now. Raises as `cancel` does."""
        given: EnqueueChanges = {}
        if delay is not None:
            given["delay"] = delay
        if run_at is not None:
            given["run_at"] = run_at
        await self._store.reschedule(self._app, job_id, split_enqueue(f"Job {job_id}", given)[1])

    async def retry_many(self, wanted: Iterable[str] | JobFilter, limit: int = 200) -> BulkAnswer:
        """Retry jobs by their ids, or the first that a filter finds; at most 200, each by itself."""
        return await self._bulk(BulkOperation.RETRY, wanted, limit)

    async def cancel_many(self, wanted: Iterable[str] | JobFilter, limit: int = 200) -> BulkAnswer:
        """Cancel jobs by their ids, or the first that a filter finds; at most 200, each by itself."""
        return await self._bulk(BulkOperation.CANCEL, wanted, limit)

    async def _bulk(self, operation: BulkOperation, wanted: Iterable[str] | JobFilter, limit: int) -> BulkAnswer:
        if isinstance(wanted, JobFilter):
            return await self._store.bulk(Bulk(self._app, operation, wanted=wanted, limit=limit))
        return await self._store.bulk(Bulk(self._app, operation, tuple(wanted), limit=limit))

    async def count_by_state(self) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state."""
        return await self._store.count_by_state(self._app)
