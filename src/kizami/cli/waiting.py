"""Waits for a job's end by asking the store, which works whichever process performs it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from kizami.cli.printing import notice
from kizami.core.states import ENDED

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.store.protocol import Job


async def wait_for_end(app: Kizami, job_id: str, seconds: float) -> Job | None:
    """Return the job once it has ended, or as it is when the time is up. None: retention has removed it."""
    job = await app.jobs.wait(job_id, timeout=timedelta(milliseconds=int(seconds * 1_000)))
    if job is not None and job.state not in ENDED:
        notice(f"Job {job_id} has not ended after {seconds:g} s; it is {job.state} and goes on without this command.")
    return job
