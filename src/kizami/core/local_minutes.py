"""A set of local minutes: which minutes of the day, on which days of each shape of year.

This is what a cron expression means before any time zone. Local minutes are counted from 1970-01-01T00:00 on the
local clock, within the years 1 to 9999. All searches are bit scans; none walks minutes, hours or days.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from kizami.core.year import FIRST_YEAR, LAST_YEAR, YearDays, year_at, year_of

MINUTES_PER_DAY = 1440
NEVER = 1 << 62
"""What a search answers when nothing is left: a minute after all minutes; its negative is one before all."""


@dataclass(frozen=True, slots=True)
class LocalMinutes:
    """Minutes of the day (bit n is minute n) on the days of `year_days`; two of equal meaning are equal."""

    times: int
    year_days: YearDays
    _first_time: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.times:
            object.__setattr__(self, "year_days", (0,) * len(self.year_days))
        object.__setattr__(self, "_first_time", (self.times & -self.times).bit_length() - 1)

    def __bool__(self) -> bool:
        """Tell whether there is any minute in it."""
        return any(self.year_days)

    def at_times(self, times: int) -> LocalMinutes:
        """Return the part of the set that lies at these minutes of the day."""
        return LocalMinutes(self.times & times, self.year_days)

    def next_after(self, minute: int) -> int:
        """Return the first minute of the set strictly after `minute`, or NEVER past the year 9999."""
        day, time = divmod(minute, MINUTES_PER_DAY)
        year, first_day, shape = year_of(day)
        days = self.year_days[shape] >> day - first_day
        if days & 1:
            later = self.times >> time + 1
            if later:
                return minute + (later & -later).bit_length()
        days >>= 1
        day += 1
        while not days:
            if year == LAST_YEAR:
                return NEVER
            year, day, shape = year_at(year + 1)
            days = self.year_days[shape]
        return (day + (days & -days).bit_length() - 1) * MINUTES_PER_DAY + self._first_time

    def last_until(self, minute: int) -> int:
        """Return the last minute of the set at or before `minute`, or minus NEVER before the year 1."""
        day, time = divmod(minute, MINUTES_PER_DAY)
        year, first_day, shape = year_of(day)
        days = self.year_days[shape] & (2 << day - first_day) - 1
        if days >> day - first_day:
            earlier = self.times & (2 << time) - 1
            if earlier:
                return day * MINUTES_PER_DAY + earlier.bit_length() - 1
            days ^= 1 << day - first_day
        while not days:
            if year == FIRST_YEAR:
                return -NEVER
            year, first_day, shape = year_at(year - 1)
            days = self.year_days[shape]
        return (first_day + days.bit_length() - 1) * MINUTES_PER_DAY + self.times.bit_length() - 1

    def count(self, start: int, end: int) -> int:
        """Return how many minutes of the set are in [start, end); costs one addition per year between them."""
        first_year, before_start = self._count_in_year_before(start)
        last_year, before_end = self._count_in_year_before(end)
        days = sum(self.year_days[year_at(year).shape].bit_count() for year in range(first_year, last_year))
        return days * self.times.bit_count() + before_end - before_start

    def _count_in_year_before(self, minute: int) -> tuple[int, int]:
        """Return the year of `minute`, and how many minutes of the set that year has before it."""
        day, time = divmod(minute, MINUTES_PER_DAY)
        year, first_day, shape = year_of(day)
        days = self.year_days[shape]
        whole = (days & (1 << day - first_day) - 1).bit_count() * self.times.bit_count()
        today = (self.times & (1 << time) - 1).bit_count() if days >> day - first_day & 1 else 0
        return year, whole + today


@lru_cache(maxsize=256)
def unite(sets: tuple[LocalMinutes, ...]) -> tuple[LocalMinutes, ...]:
    """Return the union as parts that share no day, in one order, so that equal unions give equal parts."""
    days_at: dict[int, YearDays] = {}
    for one in sets:
        days_at = _add(days_at, one)
    return tuple(LocalMinutes(times, days_at[times]) for times in sorted(days_at))


def _add(days_at: dict[int, YearDays], added: LocalMinutes) -> dict[int, YearDays]:
    """Return the days by their times of day, with the added set's times put into its days."""
    result: dict[int, YearDays] = {}
    rest = added.year_days
    for times, days in days_at.items():
        _join(result, times | added.times, tuple(a & b for a, b in zip(days, added.year_days, strict=True)))
        _join(result, times, tuple(a & ~b for a, b in zip(days, added.year_days, strict=True)))
        rest = tuple(a & ~b for a, b in zip(rest, days, strict=True))
    _join(result, added.times, rest)
    return result


def _join(days_at: dict[int, YearDays], times: int, days: YearDays) -> None:
    """Put days under their times of day, beside those that are there already."""
    if any(days):
        there = days_at.get(times)
        days_at[times] = days if there is None else tuple(a | b for a, b in zip(there, days, strict=True))
