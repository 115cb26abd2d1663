"""Schedules in code: checked at once, with a message that names the schedule, the field and the remedy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final

from kizami.app.callables import refuse_generators
from kizami.app.performer import Performer
from kizami.app.signature import require_takes
from kizami.app.tick import Tick
from kizami.core.errors import DefinitionError, PayloadError
from kizami.core.names import require_name
from kizami.core.options import JobOptions
from kizami.core.times import MS_PER_DAY
from kizami.core.timing import (
    CronTiming,
    IntervalTiming,
    Timing,
    cron_timing,
    fingerprint,
    interval_timing,
    zone_data_of,
    zone_of,
)
from kizami.core.window import Finding, Window, check_ticks
from kizami.core.zone import TimeZone
from kizami.engine.payload_function import PayloadFunction
from kizami.engine.performing import Scheduled
from kizami.store.protocol import NewJob, Origin, ScheduleDefinition

NOT_ON_SCHEDULES: Final = ("unique_key", "unique_for", "delay", "run_at")
OVERLAPS: Final = ("skip", "overlap")
DRIVERS: Final = ("inner", "external")


@dataclass(frozen=True, slots=True)
class ScheduleInCode:
    """One schedule as an app defines it."""

    name: str
    timing: Timing
    performer: Performer[Any, Any]
    payload: object
    options: JobOptions
    overlap: str
    driver: str
    lease: str | None
    window: Window | None
    payload_function: PayloadFunction | None = field(default=None, compare=False)

    @property
    def zone(self) -> TimeZone:
        """Return the time zone that the schedule's local times are in; UTC for an interval."""
        return zone_of(self.timing)

    def findings(self, from_ms: int, anchor_ms: int | None = None) -> tuple[Finding, ...]:
        """Return the ticks outside the posting window, for every offset in force from now on.

        `anchor_ms` is what an interval counts from, by default from now.
        """
        return () if self.window is None else check_ticks(self.timing, self.window, from_ms, anchor_ms=anchor_ms)

    def scheduled(self) -> Scheduled:
        """Return what the engine needs."""
        return Scheduled(self._definition(), self._check_job, self.payload, self.payload_function)

    def _definition(self) -> ScheduleDefinition:
        what = {
            "timing": fingerprint(self.timing),
            "binding": self.performer.binding,
            "payload": self.performer.meaning(self.payload),
            "options": asdict(self.options),
            "overlap": self.overlap,
            "driver": self.driver,
            "lease": self.lease,
        }
        digest = hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:32]
        description = describe(self.timing)
        zone_data = zone_data_of(self.timing) if self.driver == "inner" else None
        return ScheduleDefinition(
            self.name,
            self.timing,
            self.performer.binding,
            self.overlap,
            self.driver,
            self.lease,
            digest,
            description,
            zone_data,
        )

    def _check_job(self, payload: object, scheduled_at: int, manual: bool) -> NewJob:
        origin = Origin(self.name, scheduled_at, manual, self.lease)
        return self.performer.tick_job(payload, origin, self.options)


def describe(timing: Timing) -> str:
    """Return a timing for people."""
    if isinstance(timing, CronTiming):
        return f"{' | '.join(timing.expressions)} ({timing.zone.name})"
    return f"every {timedelta(milliseconds=timing.every_ms)}"


def make_timing(owner: str, cron: str | Iterable[str] | None, every: timedelta | None, time_zone: str | None) -> Timing:
    """Return the timing of a schedule: exactly one of `cron` and `every`. Raises DefinitionError and its kinds."""
    if (cron is None) == (every is None):
        given = "neither cron nor every" if cron is None else "both cron and every"
        raise DefinitionError(f"{owner} has {given}.", remedy="Give exactly one of them.", field="cron")
    if every is not None and time_zone is not None:
        raise DefinitionError(f"{owner} has time_zone with every.", remedy="Use it with cron only.", field="time_zone")
    try:
        if cron is not None:
            return cron_timing(cron, "UTC" if time_zone is None else time_zone)
        return interval_timing(every)  # type: ignore[arg-type]  # checked inside
    except DefinitionError as error:
        raise type(error)(f"{owner}: {error.message}", remedy=error.remedy, **error.facts) from error


def define(
    name: str,
    target: object,
    timing: Timing,
    *,
    payload: object,
    overlap: str,
    lease: str | None,
    driver: str,
    window: Window | None,
    options: dict[str, Any],
) -> ScheduleInCode:
    """Return a checked schedule. Raises DefinitionError."""
    owner = f"Schedule {require_name('Schedule', name)}"
    if not isinstance(target, Performer):
        raise DefinitionError(
            f"{owner}: its target {target!r} is not a performer.",
            remedy="Give a function decorated with @app.performer; flows are not available in this version.",
            field="target",
        )
    for option in NOT_ON_SCHEDULES:
        if option in options:
            remedy = "Remove it: a tick's job is identified and timed by the schedule itself."
            raise DefinitionError(f"{owner}: {option} can't be used on a schedule.", remedy=remedy, field=option)
    _require(owner, "overlap", overlap, OVERLAPS)
    _require(owner, "driver", driver, DRIVERS)
    if lease is not None:
        require_name(f"{owner}: lease", lease)
        if target.runs_in == "process":
            raise DefinitionError(
                f"{owner}: its performer runs in a process, which can't ask whether the lease is still its own.",
                remedy='Let it run in a thread (leave runs_in="process" out), or leave the lease out.',
                field="lease",
            )
    if window is not None and not isinstance(window, Window):
        raise DefinitionError(
            f"{owner}: window is {window!r}.", remedy='Give kizami.Window("08:00", "21:00").', field="window"
        )
    if window is not None and isinstance(timing, IntervalTiming) and MS_PER_DAY % timing.every_ms:
        raise DefinitionError(
            f"{owner}: its interval doesn't divide 24 hours, so the hours of its ticks wander out of any window.",
            remedy="Give an interval that divides a day, a cron expression, or no window.",
            field="window",
        )
    checked = target.check_options(owner, options)
    function = None
    if callable(payload):
        function = _payload_function(owner, name, payload, timing)
    else:
        try:
            target.tick_job(payload, Origin(name, 0), checked)
        except PayloadError as error:
            raise DefinitionError(f"{owner}: {error.message}", remedy=error.remedy, field="payload") from error
    return ScheduleInCode(name, timing, target, payload, checked, overlap, driver, lease, window, function)


def _payload_function(owner: str, name: str, function: Callable[[Tick], object], timing: Timing) -> PayloadFunction:
    if isinstance(function, Performer):
        raise DefinitionError(
            f"{owner}: its payload is the performer {function.binding}.",
            remedy="Give a value, or a plain function of the tick that returns one.",
            field="payload",
        )
    refuse_generators(f"{owner}: its payload function", function)
    require_takes(f"{owner}: its payload function", function, "payload", "the Tick")
    zone = zone_of(timing)
    return PayloadFunction(name, lambda scheduled_at, manual: function(Tick(name, scheduled_at, zone, manual)))


def _require(owner: str, field: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DefinitionError(
            f"{owner}: {field} is {value!r}.", remedy=f"Use {' or '.join(map(repr, allowed))}.", field=field
        )
