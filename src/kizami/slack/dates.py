"""Which local date and zone a job works in: those of its tick, never those of the moment it happens to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kizami.core import window
from kizami.core.times import MS_PER_DAY, to_ms
from kizami.core.timing import CronTiming
from kizami.core.zone import load_zone

if TYPE_CHECKING:
    from datetime import date, timedelta

    from kizami.core.zone import TimeZone
    from kizami.engine.context import JobContext


class HasLocalDate(Protocol):
    """A tick."""

    @property
    def local_date(self) -> date:
        """Return the planned time's date in the schedule's time zone."""
        ...


def local_date(tick: HasLocalDate) -> date:
    """Return the local date of a tick's planned time in its schedule's time zone."""
    return tick.local_date


async def job_zone(job: JobContext, time_zone: str | None) -> TimeZone:
    """Return the zone asked for, else that of the job's schedule, else UTC. Raises TimeZoneError."""
    if time_zone is not None:
        return load_zone(time_zone)
    origin = job.job.origin
    schedule = await job.store.schedules.get(job.app, origin.schedule) if origin else None
    timing = schedule.timing if schedule else None
    return timing.zone if isinstance(timing, CronTiming) else load_zone("UTC")


async def job_date(job: JobContext, zone: TimeZone) -> date:
    """Return the local date of the job's tick; of a job without one, today's by the store's clock."""
    at_ms = job.scheduled_at_ms
    return window.local_date(await job.store.schedules.now() if at_ms is None else at_ms, zone)


def days_of(max_age: timedelta) -> int:
    """Return whole days, rounded up: due dates know no hours. Raises InvalidInputError for a negative length."""
    return -(-to_ms(max_age, name="max_age", least_ms=0) // MS_PER_DAY)
