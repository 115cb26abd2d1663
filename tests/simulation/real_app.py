"""Apps in real time, on a file in a folder."""

from __future__ import annotations

from pathlib import Path

from kizami import Kizami, WorkerSettings
from kizami.store.protocol import Job
from tests.crash.processes import until

SECONDS_MAX = 30


def app_in(folder: Path, settings: WorkerSettings, name: str = "kizami") -> Kizami:
    return Kizami(name, database_url=f"sqlite:///{folder / 'kizami.db'}", settings=settings)


async def ended(app: Kizami, job_id: str) -> Job:
    """Wait for a job's end."""

    async def has_ended() -> bool:
        found = await app.jobs.get(job_id)
        return found is not None and found.ended_at is not None

    await until(has_ended, f"{job_id} ends", seconds=SECONDS_MAX)
    job = await app.jobs.get(job_id)
    assert job is not None
    return job
