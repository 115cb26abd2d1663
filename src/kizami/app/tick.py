"""What a schedule's payload function and a scheduled function know of their tick."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from kizami.core.times import EpochMs, to_datetime
from kizami.core.window import local_date
from kizami.core.zone import TimeZone


@dataclass(frozen=True, slots=True)
class Tick:
    """One planned time of a schedule. Dates and windows derive from it, never from the time of the execution."""

    schedule: str
    scheduled_at_ms: EpochMs
    zone: TimeZone
    manual: bool = False

    @property
    def scheduled_at(self) -> datetime:
        """Return the planned time (of a manual fire: the trigger's) in the schedule's time zone."""
        return to_datetime(self.scheduled_at_ms, self.zone)

    @property
    def local_date(self) -> date:
        """Return the planned time's date in the schedule's time zone."""
        return local_date(self.scheduled_at_ms, self.zone)
