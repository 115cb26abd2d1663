"""What a performer knows of the job it is doing, and what ordinary code can ask about the job around it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kizami.core.errors import ConfigurationError
from kizami.core.progress import clamp_progress
from kizami.core.times import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kizami.engine.lease import HeldLease
    from kizami.runtime import Runtime
    from kizami.store.protocol import ClaimedJob, LeaseFence, Store

log = logging.getLogger("kizami.job")


class LeaseLost(BaseException):
    """This run's lease belongs to another run now: stop before the next effect."""


class Beaten:
    """The answer of a heartbeat: may be awaited or left alone; the work is done already."""

    def __await__(self) -> Generator[None, None, None]:
        """Return at once."""
        yield from ()


def _ignore(progress: float | None) -> None:
    """Take no notice: outside of a worker there is no deadline to move."""


@dataclass(slots=True)
class JobContext:
    """The job being performed.

    `deadline` moves with each heartbeat. `idempotency_key` is the same for every attempt of a job: give it to systems
    that accept one. `tasks` are those that the performer started and that have not been collected yet; None before the
    first.
    """

    job: ClaimedJob
    store: Store
    runtime: Runtime
    worker_id: str
    lease: HeldLease | None = None
    _move_deadline: Callable[[float | None], None] = field(default=_ignore)
    _deadline_ms: Callable[[], int] = field(default=lambda: 0)
    tasks: weakref.WeakSet[asyncio.Task[Any]] | None = field(default=None, repr=False)

    @property
    def job_id(self) -> str:
        """Return the job's id, `<binding>#<shard>:<local id>`."""
        return self.job.job_id

    @property
    def app(self) -> str:
        """Return the name of the app whose job this is."""
        return self.job.app

    @property
    def attempt(self) -> int:
        """Return which attempt this is, from 1."""
        return self.job.attempt

    @property
    def idempotency_key(self) -> str:
        """Return a key that is the same for all attempts of this job and of no other."""
        return f"{self.job.app}/{self.job.job_id}"

    @property
    def deadline(self) -> datetime:
        """Return when this attempt times out, UTC, as far as heartbeats have moved it."""
        return to_datetime(self._deadline_ms())

    @property
    def scheduled_at_ms(self) -> int | None:
        """Return the planned time of the tick that made this job (epoch ms), or None when no schedule did."""
        return self.job.origin.scheduled_at if self.job.origin else None

    @property
    def fence(self) -> LeaseFence | None:
        """Return what writes must carry while this job holds a lease."""
        return self.lease.fence if self.lease else None

    def heartbeat(self, progress: float | None = None) -> Beaten:
        """Say that the job is alive: its deadline is now + timeout again. Works in async and sync performers.

        `progress` is clamped to 0..1; NaN, booleans and non-numbers count as none. Never raises.
        """
        self._move_deadline(clamp_progress(progress))
        return Beaten()

    async def still_ours(self) -> bool:
        """Tell whether this run may go on: it holds its lease (renewed when due), or it needs none."""
        return self.lease is None or await self.lease.still_ours()

    async def require_lease(self) -> None:
        """Raise LeaseLost unless this run may go on; ask right before every effect that people see."""
        if not await self.still_ours():
            raise LeaseLost

    def still_ours_blocking(self) -> bool:
        """Tell a sync performer whether this run may go on, as `still_ours` does; not for the event loop.

        Raises StoreError when the store can't be asked.
        """
        return self.lease is None or self.lease.still_ours_blocking()

    def require_lease_blocking(self) -> None:
        """Raise LeaseLost in a sync performer unless this run may go on; ask before every effect that people see."""
        if not self.still_ours_blocking():
            raise LeaseLost


_current: ContextVar[JobContext | None] = ContextVar("kizami_job", default=None)


def current_job() -> JobContext:
    """Return the job that the calling code runs in. Raises ConfigurationError outside of a job."""
    context = _current.get()
    if context is None:
        raise ConfigurationError(
            "This only works inside a job.",
            remedy="Call it from a performer that a Kizami worker runs.",
        )
    return context


def enter(context: JobContext | None) -> None:
    """Make `context` the job of everything that the calling task does from here on."""
    _current.set(context)


def current_or_none() -> JobContext | None:
    """Return the job that the calling code runs in, or None."""
    return _current.get()


def job_of(context: Context) -> JobContext | None:
    """Return the job that a set of context variables belongs to, or None."""
    return context.get(_current)
