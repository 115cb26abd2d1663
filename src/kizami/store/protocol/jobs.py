"""Durable jobs: enqueue, claim, report, heartbeat, reap, and what people ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from kizami.core.backoff import Backoff
from kizami.core.options import FirstDue, Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.core.times import EpochMs


@dataclass(frozen=True, slots=True)
class Origin:
    """The tick that made a job: the schedule, its planned (or trigger) time, and the lease its handler takes."""

    schedule: str
    scheduled_at: EpochMs
    manual: bool = False
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be enqueued; `payload` is compact JSON, already checked against the performer's type."""

    app: str
    binding: str
    local_id: str
    payload: str
    options: JobOptions = field(default_factory=JobOptions)
    first_due: FirstDue = field(default_factory=FirstDue)
    shard: int = 0
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to one enqueue; `existing` tells that a job of this identity was there already."""

    job_id: str
    existing: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker asks for up to `limit` jobs of the bindings that it can perform."""

    app: str
    worker_id: str
    bindings: tuple[str, ...]
    limit: int
    grace_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job handed to a worker; `key` and `claim` fence whatever the worker says of it later."""

    key: int
    claim: int
    app: str
    job_id: str
    binding: str
    payload: str
    attempt: int
    attempts_allowed: int
    retries: int
    snoozes: int
    options: JobOptions
    origin: Origin | None
    created_at: EpochMs


@dataclass(frozen=True, slots=True)
class Horizon:
    """What there is to wait for: jobs ready now, and when the next waiting one becomes due."""

    now: EpochMs
    ready: bool
    next_due_at: EpochMs | None


class Outcome(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a claimed job.

    `state` is where it goes; for SCHEDULED, `delay_ms` is the wait. `started_at` and `ended_at` are the worker's wall
    clock, for people to read only. A first-try success leaves no attempt row.
    """

    key: int
    claim: int
    state: JobState
    outcome: Outcome
    delay_ms: int = 0
    result: str | None = None
    result_note: str | None = None
    error: str | None = None
    started_at: EpochMs = 0
    ended_at: EpochMs = 0
    uses_attempt: bool = True
    skipped_by_lease: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A performer's sign of life; `progress` is 0..1 or None, the job is alive for `alive_ms` more."""

    key: int
    claim: int
    alive_ms: int
    progress: float | None = None


@dataclass(frozen=True, slots=True)
class Vouch:
    """A worker's sign of life for one of its jobs that is within its own deadline."""

    key: int
    claim: int
    alive_ms: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """A job taken from a worker that fell silent or is gone."""

    job_id: str
    state: JobState
    worker_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One line of a job's attempt log."""

    attempt: int
    outcome: Outcome
    error: str | None
    worker_id: str
    started_at: EpochMs
    ended_at: EpochMs


@dataclass(frozen=True, slots=True)
class Job:
    """A job as people see it. All `*_at` are epoch milliseconds."""

    job_id: str
    app: str
    binding: str
    state: JobState
    payload: str
    priority: int
    attempt: int
    attempts_allowed: int
    guarantee: Guarantee
    timeout_ms: int
    backoff: Backoff
    due_at: EpochMs
    created_at: EpochMs
    started_at: EpochMs | None
    ended_at: EpochMs | None
    progress: float | None
    result: str | None
    result_note: str | None
    error: str | None
    worker_id: str | None
    origin: Origin | None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list, newest first; `before` is the cursor that an earlier page gave."""

    app: str
    states: tuple[JobState, ...] = ()
    binding: str | None = None
    schedule: str | None = None
    before: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs and the cursor of the next one, if there is one."""

    jobs: tuple[Job, ...]
    next_cursor: str | None


class JobStore(Protocol):
    """Operations on jobs."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in order, all or none; one whose id exists already is answered with that id."""
        ...

    async def horizon(self, app: str, bindings: tuple[str, ...]) -> Horizon:
        """Tell whether anything can be claimed, and if not, when that changes by itself."""
        ...

    async def claim(self, claim: Claim) -> tuple[ClaimedJob, ...]:
        """Hand up to `limit` ready jobs to a worker: highest effective priority first, each to one worker only."""
        ...

    async def start(self, key: int, claim: int) -> bool:
        """Move an at-most-once job to RUNNING before its performer is called; False: it is no longer this worker's."""
        ...

    async def report(self, reports: Sequence[Report]) -> tuple[bool, ...]:
        """Record outcomes; False for each whose claim number is no longer current (and nothing changed).

        A repeat of a report that landed is answered with True.
        """
        ...

    async def heartbeat(self, heartbeats: Sequence[Heartbeat]) -> tuple[bool, ...]:
        """Record signs of life; False for each job that is no longer this worker's."""
        ...

    def vouch_blocking(self, worker_id: str, vouches: Sequence[Vouch]) -> None:
        """Record a worker's sign of life and those of its jobs, from a thread that isn't the event loop."""
        ...

    async def reap(self, app: str, trusted_ms: int, grace_ms: int) -> tuple[Reaped, ...]:
        """Take jobs whose silence exceeds timeout + grace, or whose worker isn't registered any more.

        `trusted_ms` is for how long the caller has been watching without a gap; a job is only reaped for silence when
        that is at least its own timeout + grace.
        """
        ...

    async def retry(self, app: str, job_id: str) -> None:
        """Schedule a FAILED or STALLED job again, with max_attempts more; raise NotFoundError or WrongStateError."""
        ...

    async def cancel(self, app: str, job_id: str) -> None:
        """Cancel a SCHEDULED job; raise NotFoundError or WrongStateError."""
        ...

    async def get(self, app: str, job_id: str) -> Job | None:
        """Return a job with its attempt log."""
        ...

    async def list(self, wanted: JobFilter) -> JobPage:
        """Return a page of jobs, newest first, without their attempt logs."""
        ...

    async def count_by_state(self, app: str) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state."""
        ...

    async def purge(self, app: str, ended_for_ms: int, limit: int) -> int:
        """Remove at most `limit` jobs that ended at least that long ago; return how many were removed."""
        ...
