"""Where local minutes meet a time zone: which instants (UTC seconds) a set of local minutes stands for.

A local minute that is skipped has no instant; one that is shown twice has its first. Both follow from searching the
zone's first passes only (see zone.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.core.local_minutes import NEVER, LocalMinutes

if TYPE_CHECKING:
    from kizami.core.zone import TimeZone

_MINUTE = 60


def next_instant(minutes: LocalMinutes, zone: TimeZone, after_s: int) -> int | None:
    """Return the first instant of the set strictly after `after_s`; None if there is none before the year 10000."""
    passes, index = zone.first_passes_from(after_s)
    start, end, offset = passes[index]
    if not start <= after_s < end:
        after_s = start - 1 if after_s < start else end - 1
    minute = minutes.next_after((after_s + offset) // _MINUTE)
    instant = minute * _MINUTE - offset
    if instant < end:
        return instant
    return _next_in_later_passes(minutes, zone, index, end + offset, minute)


def last_instant(minutes: LocalMinutes, zone: TimeZone, until_s: int) -> int | None:
    """Return the last instant of the set at or before `until_s`; None if there is none since the year 1."""
    passes, index = zone.first_passes_from(until_s)
    for start, end, offset in reversed(passes[: index + 1]):
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
    _, index = zone.first_passes_from(after_s)
    total = 0
    while (one := zone.first_pass(index)) is not None and one.start <= until_s:
        first = max(one.start, after_s + 1) + one.offset
        beyond = min(one.end, until_s + 1) + one.offset
        if first < beyond:
            total += minutes.count(-(-first // _MINUTE), -(-beyond // _MINUTE))
        index += 1
    return total


def _next_in_later_passes(
    minutes: LocalMinutes, zone: TimeZone, index: int, shown_until: int, minute: int
) -> int | None:
    """Return the instant of the first minute in the passes after `index`.

    That pass ended at the local time `shown_until`; `minute` is the first one after it on the local clock, which stays
    right as long as the clock has neither jumped over it nor back.
    """
    while minute != NEVER and (following := zone.first_pass(index + 1)) is not None:
        start, end, offset = following
        if not shown_until <= start + offset <= minute * _MINUTE:
            minute = minutes.next_after((start + offset - 1) // _MINUTE)
        instant = minute * _MINUTE - offset
        if instant < end:
            return instant
        index, shown_until = index + 1, end + offset
    return None
