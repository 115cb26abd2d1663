"""Schedules: what code defined, the plan, the fires and the ledger of what became of each tick."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from kizami.core.errors import DefinitionError
from kizami.core.times import EpochMs

if TYPE_CHECKING:
    from kizami.core.timing import Timing
    from kizami.store.protocol.jobs import NewJob

SILENT_MS: Final = 30_000
"""How long a worker may give no sign of life before it counts as gone here, where nothing else is said."""


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
    OVERTAKEN = "overtaken"


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
    zone_data: str | None = None
    """The edition of the time-zone database by which this process plans it; None where that plays no part."""


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule whose planned time has come; `outstanding` is the previous fire's job if it has not ended."""

    name: str
    version: int
    planned_at: EpochMs
    outstanding: str | None


@dataclass(frozen=True, slots=True)
class DuePage:
    """Due schedules, oldest first, the store's time, and the next planned time of any other schedule.

    `broken`: why those don't fire, by name, that are due and whose timing can't be read.
    """

    now: EpochMs
    due: tuple[DueSchedule, ...]
    next_planned_at: EpochMs | None
    broken: dict[str, str]


@dataclass(frozen=True, slots=True)
class Fire:
    """Act on one tick, with its job or the reason why there is none.

    With neither, the caller hopes that the tick is settled without one (skipped, paused, a duplicate); if it wants
    one, the answer is STALE: make it, or look again. So no payload function runs for nothing.

    Only the definition in force fires: another `version` is SUPERSEDED. PLANNED lands only while `scheduled_at` is
    still the plan; EXTERNAL and MANUAL name their own time. The job's local id is the store's to make. `check_overlap`
    makes an outstanding previous job skip the tick.
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

    As the answer to a fire, `outcome` STALE, SUPERSEDED or DUPLICATE means that nothing was written. OVERTAKEN is an
    external tick that came after a later one had been settled and never fires; written unless a stretch has it already.
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
    """A schedule as people see it. All `*_at` are epoch milliseconds.

    The counts are about the plan: fired + skipped + missed + failed = the ticks planned so far. A fire by hand is in
    the ledger and in none of them; `last_error` is the last one of either.

    A schedule whose stored timing can't be read has none and says why in `broken`; it doesn't fire, all others do.
    """

    name: str
    timing: Timing | None
    broken: str | None
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
    zone_data: str | None = None
    """The edition of the time-zone database by which its plan was made; None where that plays no part."""

    @property
    def known_timing(self) -> Timing:
        """Return the timing. Raises DefinitionError if the schedule is broken."""
        if self.timing is None:
            raise broken_schedule(self.name, self.broken or "")
        return self.timing


def broken_schedule(name: str, reason: str) -> DefinitionError:
    """Return the error of a schedule whose stored timing can't be read."""
    remedy = "Start a worker whose code defines it with a timing of today's time-zone database."
    return DefinitionError(f"Schedule {name} is broken and doesn't fire: {reason}", remedy=remedy, schedule=name)


@dataclass(frozen=True, slots=True)
class Superseded:
    """A definition that is not in force: `version` is the one it last had (0 if none), `by_version` the present one.

    `zone_data`: it is in force, but planned by this edition of the time-zone database, which isn't this process's.
    """

    schedule: str
    version: int
    by_version: int
    removed: bool
    zone_data: str | None = None

    def __str__(self) -> str:
        """Return it as a sentence for the log."""
        if self.zone_data is not None:
            return (
                f"schedule {self.schedule} is planned by the time-zone database {self.zone_data}, which is not this "
                "process's; this process fires none of its ticks while a worker with that one lives"
            )
        mine = f"version {self.version}" if self.version else "never in force"
        what = "its removal" if self.removed else "a newer definition"
        return (
            f"schedule {self.schedule}: the definition of this process ({mine}) is superseded by {what} "
            f"(version {self.by_version}); this process fires none of its ticks while a worker of newer code lives"
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """A plan that another edition of the time-zone database moved (epoch ms), or only confirmed."""

    schedule: str
    timing: Timing
    before: EpochMs | None
    after: EpochMs | None
    zone_data: str | None
    """The edition that made the plan before."""


@dataclass(frozen=True, slots=True)
class Editions:
    """The edition of an app's code that the stored schedules follow, and the newest that other living workers run.

    Editions are numbered from 1 in the order in which they first ran; 0 stands for none.
    """

    in_force: int
    others: int


@dataclass(frozen=True, slots=True)
class Registration:
    """How an edition of the code stands: `versions` of its definitions that are in force, and those that are not.

    `moved`: the plans that were made anew by this process's time-zone database. `edition` is its number, 0 for a call
    from outside that had to stand back; `editions` is what it met or made.
    """

    edition: int
    editions: Editions
    versions: dict[str, int]
    superseded: tuple[Superseded, ...]
    moved: tuple[Moved, ...] = ()


def edition_fingerprint(definitions: Sequence[ScheduleDefinition]) -> str:
    """Return 32 hexadecimal digits that two editions share exactly when they plan equal schedules by equal zones."""
    lines = sorted(f"{each.name} {each.fingerprint} {each.zone_data or ''}".rstrip() for each in definitions)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


class ScheduleStore(Protocol):
    """Operations on schedules."""

    async def register(
        self,
        app: str,
        definitions: Sequence[ScheduleDefinition],
        *,
        worker_id: str | None = None,
        silent_ms: int = SILENT_MS,
        redefine: bool = False,
    ) -> Registration:
        """Make the stored schedules of an app equal to this edition of its code, where it is in force.

        In force is the newest edition that a living worker runs. `worker_id` None is a call from outside: it adds the
        schedules whose names were never stored and changes nothing, or, with `redefine`, does what a worker does; where
        a worker lives, neither. A worker that was silent for longer than `silent_ms`, or of an earlier boot, counts as
        gone. An unchanged fingerprint keeps its row (with the code's timing where the stored one can't be read); a
        changed one gets a greater version, and a changed timing a new plan (a tick already due is settled first); those
        not in `definitions` are removed.
        """
        ...

    async def editions(self, app: str, *, besides: str | None = None, silent_ms: int = SILENT_MS) -> Editions:
        """Return which edition is in force, and the newest that a living worker other than `besides` runs."""
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
