"""What people do with jobs, on an open app."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.core.states import JobState
    from kizami.store.protocol import Job, JobFilter, JobPage, JobStore


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

    async def count_by_state(self) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state."""
        return await self._store.count_by_state(self._app)
