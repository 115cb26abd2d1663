"""Waits for a job's end by asking the store, which works whichever process performs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.cli.printing import notice
from kizami.core.states import ENDED

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.store.protocol import Job

_ASK_SECONDS: Final = 0.25


async def wait_for_end(app: Kizami, job_id: str, seconds: float) -> Job | None:
    """Return the job once it has ended, or as it is when the time is up. None: retention has removed it."""
    clock = app.runtime.clock
    until_ms = clock.boot_ms() + int(seconds * 1000)
    while True:
        job = await app.jobs.get(job_id)
        if job is None or job.state in ENDED:
            return job
        left_ms = until_ms - clock.boot_ms()
        if left_ms <= 0:
            notice(
                f"Job {job_id} has not ended after {seconds:g} s; it is {job.state} and goes on without this command."
            )
            return job
        await clock.sleep(min(_ASK_SECONDS, left_ms / 1000))
