"""Schedules: what code defined, the plan, the fires and the ledger of what became of each tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from kizami.core.times import EpochMs

if TYPE_CHECKING:
    from kizami.core.timing import Timing
    from kizami.store.protocol.jobs import NewJob


class TickKind(StrEnum):
    """Who asked for a tick: the inner clock, an external one, or a person."""

    PLANNED = "planned"
    EXTERNAL = "external"
    MANUAL = "manual"


class FireOutcome(StrEnum):
    """What became of a tick (or of a stretch of dropped ones)."""

    FIRED = "fired"
    SKIPPED_OVERLAP = "skipped_overlap"
    SKIPPED_LEASE = "skipped_lease"
    FAILED = "failed"
    MISSED = "missed"
    PAUSED = "paused"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """One schedule as code defines it; `fingerprint` covers all of it, so equal meaning is an equal fingerprint."""

    name: str
    timing: Timing
    binding: str
    overlap: str
    driver: str
    lease: str | None
    fingerprint: str
    description: str


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule whose planned time has come; `outstanding` is the previous fire's job if it has not ended."""

    name: str
    version: int
    planned_at: EpochMs
    outstanding: str | None


@dataclass(frozen=True, slots=True)
class DuePage:
    """Due schedules, oldest first, the store's time, and the next planned time of any other schedule."""

    now: EpochMs
    due: tuple[DueSchedule, ...]
    next_planned_at: EpochMs | None


@dataclass(frozen=True, slots=True)
class Fire:
    """Act on one tick, with its job or the reason why there is none.

    With neither, the caller expects the overlap check to skip it; if it wouldn't, the answer is STALE: look again.

    PLANNED lands only while `scheduled_at` is still the plan and `version` the definition; EXTERNAL and MANUAL name
    their own time. The job's local id is the store's to make. `check_overlap` makes an outstanding previous job skip
    the tick.
    """

    app: str
    schedule: str
    version: int
    kind: TickKind
    scheduled_at: EpochMs
    by: str
    job: NewJob | None = None
    refusal: str | None = None
    check_overlap: bool = True
    lease_stale_ms: int = 600_000

    def lease_is_stale(self, silent_ms: int) -> bool:
        """Tell whether a lease that was silent for that long counts as abandoned."""
        return silent_ms > self.lease_stale_ms


@dataclass(frozen=True, slots=True)
class FireRecord:
    """A line of the fire ledger; for a stretch of dropped ticks, first and last planned time and their number.

    As the answer to a fire, `outcome` STALE, SUPERSEDED or DUPLICATE means that nothing was written.
    """

    schedule: str
    kind: TickKind
    outcome: FireOutcome
    planned_at: EpochMs
    planned_last_at: EpochMs
    count: int
    acted_at: EpochMs
    by: str
    job_id: str | None = None
    reason: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as people see it. All `*_at` are epoch milliseconds."""

    name: str
    timing: Timing
    binding: str
    overlap: str
    driver: str
    lease: str | None
    version: int
    description: str
    anchor_at: EpochMs
    next_at: EpochMs | None
    last_planned_at: EpochMs | None
    last_fired_at: EpochMs | None
    last_job_id: str | None
    fired_count: int
    skipped_count: int
    skipped_at: EpochMs | None
    missed_count: int
    failed_count: int
    last_error: str | None
    last_error_at: EpochMs | None
    paused_at: EpochMs | None
    registered_at: EpochMs


class ScheduleStore(Protocol):
    """Operations on schedules."""

    async def register(self, app: str, definitions: Sequence[ScheduleDefinition]) -> dict[str, int]:
        """Make the stored schedules of an app equal to its code; return each schedule's version.

        An unchanged fingerprint keeps its row; a changed one gets a greater version, and a changed timing a new plan
        (a tick already due is settled first); those not in `definitions` are removed.
        """
        ...

    async def due(self, app: str, versions: dict[str, int], limit: int) -> DuePage:
        """Return the schedules that are due, unpaused, driven from inside, and defined by these versions."""
        ...

    async def fire(self, fires: Sequence[Fire]) -> tuple[FireRecord, ...]:
        """Settle ticks, each with its job, its ledger row and the new plan in one transaction.

        Each tick fires once: a planned time at or before the last settled one is never fired again.
        Raises LeaseHeldError for a MANUAL tick of a schedule whose lease is held, NotFoundError for an unknown one.
        """
        ...

    async def now(self) -> EpochMs:
        """Return the store's wall clock."""
        ...

    async def pause(self, app: str, name: str) -> Schedule:
        """Stop firing; pausing twice is harmless. Raises NotFoundError."""
        ...

    async def resume(self, app: str, name: str) -> Schedule:
        """Fire again from the first boundary strictly after now; what passed is dropped. Raises NotFoundError."""
        ...

    async def get(self, app: str, name: str) -> Schedule | None:
        """Return one schedule."""
        ...

    async def list(self, app: str) -> tuple[Schedule, ...]:
        """Return the schedules of an app by name."""
        ...

    async def ledger(self, app: str, name: str | None, limit: int) -> tuple[FireRecord, ...]:
        """Return the newest lines of the fire ledger, of one schedule or of all."""
        ...
