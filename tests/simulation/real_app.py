"""Apps in real time, on a file in a folder, and the processes that they start."""

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


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def all_gone(*pids: int) -> None:
    async def gone() -> bool:
        return not any(map(is_alive, pids))

    await until(gone, f"{pids} are gone", seconds=SECONDS_MAX)


def noted(path: Path) -> list[int]:
    return [int(word) for word in path.read_text(encoding="utf-8").split()] if path.exists() else []


async def started(path: Path) -> list[int]:
    """Wait for `forever` and return its process and the one it started."""

    async def written() -> bool:
        return len(noted(path)) == 2

    await until(written, "the performer has begun", seconds=SECONDS_MAX)
    return noted(path)
