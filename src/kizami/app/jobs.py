"""What people do with jobs, on an open app."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kizami.core.options import EnqueueChanges, split_enqueue
from kizami.store.protocol import Bulk, BulkOperation, JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from kizami.core.states import JobState
    from kizami.store.protocol import BulkAnswer, Job, JobPage, JobStore


class Jobs:
    """An app's jobs."""

    def __init__(self, app: str, store: JobStore) -> None:
        self._app = app
        self._store = store

    async def get(self, job_id: str) -> Job | None:
        """Return a job with its attempt log. Raises InvalidInputError when it isn't a job id."""
        return await self._store.get(self._app, job_id)

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
