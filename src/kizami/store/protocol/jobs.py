"""Durable jobs: enqueue, claim, report, heartbeat, reap, and what people ask about them.

What is made for every job that passes is a NamedTuple: it is made in a fifth of the time of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from kizami.core.backoff import Backoff
from kizami.core.errors import InvalidInputError
from kizami.core.options import FirstDue, Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.core.times import EpochMs
from kizami.store.protocol.bindings import BindingDeclaration


@dataclass(frozen=True, slots=True)
class Origin:
    """The tick that made a job: the schedule, its planned (or trigger) time, and the lease its handler takes."""

    schedule: str
    scheduled_at: EpochMs
    manual: bool = False
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be enqueued; `payload` is compact JSON, already checked against the performer's type.

    Its shard follows from its partition_key and its stored binding (`kizami.core.sharding.place`). `declaration` is
    what the caller's code says of the binding: it is stored when nobody has declared the binding yet. Who doesn't have
    the code gives none.
    """

    app: str
    binding: str
    local_id: str
    payload: str
    options: JobOptions = field(default_factory=JobOptions)
    first_due: FirstDue = field(default_factory=FirstDue)
    origin: Origin | None = None
    declaration: BindingDeclaration | None = None


class Enqueued(NamedTuple):
    """The answer to one enqueue.

    `existing` tells that nothing was added: a job of this identity was there already, or the unique_key is reserved by
    the job `job_id`. `state` is that job's (None: it has been removed, its reservation lives on).
    """

    job_id: str
    existing: bool = False
    state: JobState | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker asks for up to `limit` jobs of the bindings that it can perform."""

    app: str
    worker_id: str
    bindings: tuple[str, ...]
    limit: int


class ClaimedJob(NamedTuple):
    """A job handed to a worker; `key` and `claim` fence whatever the worker says of it later.

    `grace_ms` is its binding's reaper_grace at the claim: silent for timeout + grace, it is taken away.
    """

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
    grace_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """What there is to wait for.

    `ready`: a claim is worth a try, some shard has due jobs and a free place. `wake_at`: when that may change by
    itself, the next waiting job's due time or the next token (None: only when something happens).
    """

    now: EpochMs
    ready: bool
    wake_at: EpochMs | None


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


class Report(NamedTuple):
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
    concurrency_key: str | None = None
    unique_key: str | None = None
    partition_key: str | None = None


class JobSort(StrEnum):
    """What a list is sorted by. ENDED lists jobs that have ended, DUE those whose time has not come."""

    CREATED = "created"
    ENDED = "ended"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list, newest (latest ended, latest due) first, or with `oldest_first` the other way round.

    `app` is filled in by `app.jobs`.

    `before` is the opaque cursor that an earlier page of the same filter gave. `created_from` is inclusive,
    `created_to` exclusive, epoch ms.
    """

    app: str = ""
    states: tuple[JobState, ...] = ()
    binding: str | None = None
    schedule: str | None = None
    before: str | None = None
    limit: int = 50
    job_id: str | None = None
    unique_key: str | None = None
    concurrency_key: str | None = None
    created_from: EpochMs | None = None
    created_to: EpochMs | None = None
    sort: JobSort = JobSort.CREATED
    oldest_first: bool = False

    def __post_init__(self) -> None:
        """Take states in any case. Raises InvalidInputError for one that doesn't exist: it would find nothing."""
        if not all(isinstance(state, JobState) for state in self.states):
            object.__setattr__(self, "states", tuple(map(_state, self.states)))


def _state(given: object) -> JobState:
    try:
        return JobState(str(given).upper())
    except ValueError as error:
        known = ", ".join(JobState)
        raise InvalidInputError(
            f"{given!r} is no state of a job.", remedy=f"States: {known}.", path="states"
        ) from error


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs and the cursor of the next one, if there is one."""

    jobs: tuple[Job, ...]
    next_cursor: str | None


class BulkOperation(StrEnum):
    """What can be done to many jobs at once."""

    RETRY = "retry"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Bulk:
    """An operation on at most 200 jobs: those named, or the first that a filter finds (its limit and cursor aside).

    By filter, only jobs in a state that the operation accepts are looked at, oldest first.
    """

    app: str
    operation: BulkOperation
    job_ids: tuple[str, ...] = ()
    wanted: JobFilter | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Refused:
    """Why one job of a bulk operation was left as it was: the code and the text of the error."""

    job_id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """What a bulk operation did; `remaining` counts the jobs that its filter still finds.

    The count stops at 10,000; `remaining_exact` tells whether it got to the end.
    """

    done: tuple[str, ...]
    refused: tuple[Refused, ...] = ()
    remaining: int = 0
    remaining_exact: bool = True


@dataclass(frozen=True, slots=True)
class Swept:
    """What one bounded batch of housekeeping did; `more` tells that another is due now."""

    jobs: int
    reservations: int
    more: bool


class JobStore(Protocol):
    """Operations on jobs."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in order, all or none.

        One whose id exists, or whose unique_key is reserved, is answered with the existing job; the look-up and the
        insert are one step under any concurrency. Raises NotFoundError for a binding that neither anybody has declared
        nor the job itself declares, InvalidInputError where keys don't fit it (`place`).
        """
        ...

    async def enqueue_in(self, connection: object, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs as `enqueue` does, in the transaction of a caller's own connection: they exist iff it commits.

        The store needn't be open. Raises OtherDatabaseError, WrongStateError for a connection without a transaction.
        """
        ...

    def enqueue_in_blocking(self, connection: object, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs as `enqueue_in` does, from any thread, through a connection that isn't one of asyncio."""
        ...

    async def horizon(self, app: str, bindings: tuple[str, ...]) -> Horizon:
        """Tell whether a claim is worth a try, and if not, when that changes by itself. Only reads."""
        ...

    async def claim(self, claim: Claim) -> tuple[ClaimedJob, ...]:
        """Hand up to `limit` jobs to a worker, each to one worker only, within the policies of their bindings.

        Due jobs are promoted from waiting to ready first, all of them; then, in one transaction,
        `kizami.core.dispatch.admit` chooses in the order of dispatch (`Policy.place`, then key), and jobs whose
        concurrency_key is full move from ready to blocked. The answer is in the order of dispatch.
        """
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

    async def reap(self, app: str, trusted_ms: int) -> tuple[Reaped, ...]:
        """Take jobs whose silence exceeds timeout + reaper_grace, or whose worker isn't registered any more.

        `trusted_ms` is for how long the caller has been watching without a gap; a job is only reaped for silence when
        that is at least its own timeout + grace.
        """
        ...

    async def retry(self, app: str, job_id: str) -> None:
        """Schedule a FAILED or STALLED job again, with max_attempts more.

        Raises NotFoundError, WrongStateError, and GoneError where the id itself tells that its retention has passed.
        """
        ...

    async def cancel(self, app: str, job_id: str) -> None:
        """Cancel a SCHEDULED job. Raises NotFoundError, GoneError or WrongStateError."""
        ...

    async def reschedule(self, app: str, job_id: str, first_due: FirstDue) -> None:
        """Move a SCHEDULED job to another due time; id, attempts and unique reservation stay.

        Its place in the order is that of a job that first becomes due then. Raises as `cancel` does.
        """
        ...

    async def bulk(self, bulk: Bulk) -> BulkAnswer:
        """Retry or cancel many jobs in one transaction, each by itself: one that is refused doesn't stop the others.

        Raises InvalidInputError for more than 200, or for neither or both of ids and filter.
        """
        ...

    async def get(self, app: str, job_id: str) -> Job | None:
        """Return a job with its attempt log."""
        ...

    async def list(self, wanted: JobFilter) -> JobPage:
        """Return a page of jobs without their attempt logs; as fast among millions as among few."""
        ...

    async def count_by_state(self, app: str) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state; kept counted, never counted out."""
        ...

    async def sweep(self, app: str, limit: int) -> Swept:
        """Remove at most `limit` ended jobs past their binding's retention, and as many ended reservations."""
        ...
