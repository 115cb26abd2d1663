"""Posting windows: the hours of the local day in which a schedule may tick, and the check that it does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, assert_never

from kizami.core.errors import DefinitionError
from kizami.core.instants import next_instant
from kizami.core.local_minutes import MINUTES_PER_DAY
from kizami.core.times import MS_PER_DAY, MS_PER_SECOND, EpochMs, format_local
from kizami.core.timing import CronTiming, IntervalTiming, Timing, next_after
from kizami.core.year import CALENDAR_REPEATS_AFTER_YEARS, date_of
from kizami.core.zone import END_S, TimeZone, load_zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date


_CLOCK_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_SECONDS_PER_DAY = 86_400
_SECONDS_PER_MINUTE = 60
_MS_PER_MINUTE = 60_000
_CALENDAR_S = (CALENDAR_REPEATS_AFTER_YEARS + 1) * 366 * _SECONDS_PER_DAY
_ALL_DAY = (1 << MINUTES_PER_DAY) - 1


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the local day, from the start minute to the end minute, both included; it may wrap midnight.

    Without a time zone of its own it is read in the schedule's. Raises DefinitionError or TimeZoneError.
    """

    start: str
    end: str
    time_zone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _minute_of_day(self.start, "start")
        _minute_of_day(self.end, "end")
        if self.time_zone is not None:
            load_zone(self.time_zone)

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"

    @property
    def minutes(self) -> int:
        """Return the minutes of the day in the window as bits."""
        first, last = _minute_of_day(self.start, "start"), _minute_of_day(self.end, "end")
        until_last, before_first = (2 << last) - 1, (1 << first) - 1
        return until_last & ~before_first if first <= last else until_last | (_ALL_DAY & ~before_first)

    def zone(self, timing: Timing | None = None) -> TimeZone:
        """Return the zone the window is read in. Raises DefinitionError if neither it nor the timing names one."""
        if self.time_zone is not None:
            return load_zone(self.time_zone)
        if isinstance(timing, CronTiming):
            return timing.zone
        message = f"The window {self} has no time zone, and nothing it could take one from."
        raise DefinitionError(message, remedy=f'Write Window("{self.start}", "{self.end}", time_zone="Europe/Berlin").')

    def contains(self, at_ms: EpochMs, zone: TimeZone | None = None) -> bool:
        """Tell whether an instant lies in the window, seconds of the last minute included.

        `zone` is the schedule's, for a window that names none. Raises DefinitionError if there is neither.
        """
        zone = self.zone() if zone is None or self.time_zone is not None else zone
        at_s = at_ms // MS_PER_SECOND
        return bool(self.minutes >> (at_s + zone.offset_at(at_s)) // _SECONDS_PER_MINUTE % MINUTES_PER_DAY & 1)


class Finding(NamedTuple):
    """One way in which a schedule breaks its window; `at_ms` is the first tick that does, if it is about one."""

    message: str
    at_ms: EpochMs | None


def local_date(at_ms: EpochMs, zone: TimeZone) -> date:
    """Return the date that the local calendar shows at an instant."""
    at_s = at_ms // MS_PER_SECOND
    return date_of((at_s + zone.offset_at(at_s)) // _SECONDS_PER_DAY)


def check_ticks(
    timing: Timing, window: Window, from_ms: EpochMs, *, anchor_ms: EpochMs | None = None
) -> tuple[Finding, ...]:
    """Return how the ticks after `from_ms` leave the window: the first tick outside, for every offset they do it under.

    Exact: every span of the zones is looked at until the calendar and their rules repeat. An interval must divide 24
    hours, and counts from `from_ms` if no anchor is given. Empty means that every tick is inside.
    """
    zone = window.zone(timing)
    match timing:
        case CronTiming(crons, plan_zone):
            if all(next_instant(cron.local_minutes, plan_zone, from_ms // MS_PER_SECOND) is None for cron in crons):
                return (Finding("It has no tick left.", None),)
            ticks = _cron_ticks_outside(timing, window, zone, from_ms // MS_PER_SECOND + 1)
        case IntervalTiming(every_ms):
            if MS_PER_DAY % every_ms:
                return (Finding(f"Its interval of {every_ms} ms doesn't divide 24 hours, so its hours wander.", None),)
            ticks = _interval_ticks_outside(
                timing, window, zone, from_ms + 1, from_ms if anchor_ms is None else anchor_ms
            )
        case _:
            assert_never(timing)
    return tuple(
        Finding(f"It ticks at {format_local(at_ms, zone)}, outside its window {window}.", at_ms) for at_ms in ticks
    )


def _cron_ticks_outside(timing: CronTiming, window: Window, zone: TimeZone, from_s: int) -> Iterator[EpochMs]:
    """Yield the first tick outside the window for every distance between the clocks of plan and window."""
    found: set[int] = set()
    for start, end, ahead in _stretches(timing.zone, zone, from_s):
        if ahead in found:
            continue
        outside = _ALL_DAY & ~_turned(window.minutes, ahead // _SECONDS_PER_MINUTE)
        plans = [plan for cron in timing.crons if (plan := cron.local_minutes.at_times(outside))]
        instants = [at_s for plan in plans if (at_s := next_instant(plan, timing.zone, start - 1)) is not None]
        if instants and min(instants) < end:
            found.add(ahead)
            yield min(instants) * MS_PER_SECOND


def _interval_ticks_outside(
    timing: IntervalTiming, window: Window, zone: TimeZone, from_ms: EpochMs, anchor_ms: EpochMs
) -> Iterator[EpochMs]:
    """Yield the first tick outside the window for every offset; one day of ticks stands for all under one offset."""
    settled: set[int] = set()
    for start, end, offset in _stretches(load_zone("UTC"), zone, from_ms // MS_PER_SECOND):
        if offset in settled:
            continue
        first_ms = max(start * MS_PER_SECOND, from_ms)
        beyond_ms = min(end * MS_PER_SECOND, first_ms + MS_PER_DAY)
        outside = _first_outside(timing, window, zone, anchor_ms, range(first_ms, beyond_ms))
        if outside is not None:
            yield outside
        if outside is not None or beyond_ms == first_ms + MS_PER_DAY:
            settled.add(offset)


def _first_outside(
    timing: IntervalTiming, window: Window, zone: TimeZone, anchor_ms: EpochMs, among: range
) -> EpochMs | None:
    """Return the first tick outside the window; one tick stands for its whole minute."""
    at_ms = next_after(timing, among.start - 1, anchor_ms)
    while at_ms in among:
        if not window.contains(at_ms, zone):
            return at_ms
        at_ms = next_after(timing, at_ms - at_ms % _MS_PER_MINUTE + _MS_PER_MINUTE - 1, anchor_ms)
    return None


def _stretches(plan_zone: TimeZone, zone: TimeZone, from_s: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and the seconds `zone` is ahead of `plan_zone`, until everything has come round once."""
    until_s = max(from_s, plan_zone.repeats_from(), zone.repeats_from()) + _CALENDAR_S
    start = from_s
    while start < min(until_s, END_S):
        of_plan, of_window = plan_zone.span_at(start), zone.span_at(start)
        end = min(of_plan.end, of_window.end)
        yield start, end, of_window.offset - of_plan.offset
        start = end


def _turned(minutes: int, ahead: int) -> int:
    """Return minutes of the day as seen on a clock that the given one is `ahead` minutes ahead of."""
    ahead %= MINUTES_PER_DAY
    return (minutes >> ahead | minutes << MINUTES_PER_DAY - ahead) & _ALL_DAY


def _minute_of_day(text: str, name: str) -> int:
    """Return the minute of the day of `08:00`. Raises DefinitionError for any other form."""
    match = _CLOCK_TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        message = f"Window {name} {text!r} is not a time of day."
        raise DefinitionError(message, remedy='Write hours and minutes from "00:00" to "23:59".', field=name)
    return int(match[1]) * 60 + int(match[2])
