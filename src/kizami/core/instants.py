"""Where local minutes meet a time zone: which instants (UTC seconds) a set of local minutes stands for.

A local minute that is skipped has no instant; one that is shown twice has its first. Both follow from searching the
zone's first passes only (see zone.py).
"""

from __future__ import annotations

from kizami.core.local_minutes import NEVER, LocalMinutes
from kizami.core.zone import BEGINNING_S, TimeZone

_MINUTE = 60


def next_instant(minutes: LocalMinutes, zone: TimeZone, after_s: int) -> int | None:
    """Return the first instant of the set strictly after `after_s`; None if there is none before the year 10000."""
    start, end, offset = zone.first_pass_at(after_s)
    if not start <= after_s < end:
        after_s = start - 1 if after_s < start else end - 1
    minute = minutes.next_after((after_s + offset) // _MINUTE)
    instant = minute * _MINUTE - offset
    if instant < end:
        return instant
    return _next_in_later_passes(minutes, zone, minute)


def last_instant(minutes: LocalMinutes, zone: TimeZone, until_s: int) -> int | None:
    """Return the last instant of the set at or before `until_s`; None if there is none since the year 1."""
    for start, end, offset in reversed(zone.first_passes(BEGINNING_S, until_s)):
        minute = minutes.last_until((min(until_s, end - 1) + offset) // _MINUTE)
        instant = minute * _MINUTE - offset
        if instant >= start:
            return instant
    return None


def is_instant(minutes: LocalMinutes, zone: TimeZone, at_s: int) -> bool:
    """Tell whether the set stands for exactly this instant."""
    return next_instant(minutes, zone, at_s - 1) == at_s


def count_instants(minutes: LocalMinutes, zone: TimeZone, after_s: int, until_s: int) -> int:
    """Return how many instants of the set are in (after_s, until_s], without visiting them."""
    total = 0
    for start, end, offset in zone.first_passes(after_s, until_s):
        first = max(start, after_s + 1) + offset
        beyond = min(end, until_s + 1) + offset
        if first < beyond:
            total += minutes.count(-(-first // _MINUTE), -(-beyond // _MINUTE))
    return total


def _next_in_later_passes(minutes: LocalMinutes, zone: TimeZone, minute: int) -> int | None:
    """Return the instant of `minute`, or of the first one of the set after it that the clock does not jump over."""
    while minute != NEVER and (later := zone.first_pass_beyond(minute * _MINUTE)) is not None:
        local_start = later.start + later.offset
        if local_start <= minute * _MINUTE:
            return minute * _MINUTE - later.offset
        minute = minutes.next_after((local_start - 1) // _MINUTE)
    return None
