"""Jobs: look them up, retry, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator

from kizami.core.states import JobState
from kizami.store.protocol import JobFilter
from kizami.web.current import App, JobsCounted, job_or_404
from kizami.web.new_jobs import JobAdded, JobRequest, requested
from kizami.web.shapes import JobAnswer, JobList, Stats
from kizami.web.views import job_answer, stats_of

LIMIT_MAX = 200
CURSOR_LENGTH_MAX = 500
router = APIRouter(tags=["jobs"])


_State = Annotated[JobState, BeforeValidator(str.upper)]
"""However it is written."""


@router.get("/jobs")
async def list_jobs(
    app: App,
    *,
    state: Annotated[list[_State] | None, Query(description="May be given several times.")] = None,
    binding: str | None = None,
    schedule: str | None = None,
    cursor: Annotated[str | None, Query(max_length=CURSOR_LENGTH_MAX)] = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 50,
) -> JobList:
    """Return a page of jobs, newest first; `cursor` is an earlier page's `next_cursor`."""
    page = await app.jobs.list(JobFilter(app.name, tuple(state or ()), binding, schedule, cursor, limit))
    return JobList(jobs=tuple(job_answer(job) for job in page.jobs), next_cursor=page.next_cursor)


@router.post("/jobs")
async def add_job(app: App, request: JobRequest) -> JobAdded:
    """Enqueue a job; answers after commit."""
    (answer,) = await app.store.jobs.enqueue([await requested(app, request)])
    return JobAdded(job_id=answer.job_id, existing=answer.existing, state=answer.state)


@router.get("/jobs/{job_id}")
async def get_job(app: App, job_id: str) -> JobAnswer:
    """Return one job with its attempt log; write the '#' of its id as %23."""
    return job_answer(await job_or_404(app, job_id))


@router.post("/jobs/{job_id}/retry")
async def retry_job(app: App, job_id: str) -> JobAnswer:
    """Schedule a FAILED or STALLED job again, with max_attempts more."""
    await app.jobs.retry(job_id)
    return job_answer(await job_or_404(app, job_id))


@router.post("/jobs/{job_id}/cancel")
async def cancel_job(app: App, job_id: str) -> JobAnswer:
    """Cancel a SCHEDULED job."""
    await app.jobs.cancel(job_id)
    return job_answer(await job_or_404(app, job_id))


@router.get("/stats")
async def stats(app: App, counts: JobsCounted) -> Stats:
    """Return how many jobs, deliveries and workers there are."""
    return await stats_of(app, counts)
