"""Time zones: IANA names, and local time as whole seconds with every transition known exactly.

The data is the bundled `tzdata` package, never the machine's own files, so that all workers of one installation answer
alike; `tzdata_version()` says which edition it is.

Cron rules see a zone through its *first passes*: the stretches of time in which the local clock shows times later than
any it has shown before. A local time that is skipped lies in none of them; one that is shown twice lies in one, at its
first instant. So the rules for both (docs/timing.md) need no special case in any search, whatever the size of the jump.
Another rule would be another way of cutting the same spans.
"""

from __future__ import annotations

import pkgutil
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from kizami.core.errors import TimeZoneError
from kizami.core.year import FIRST_YEAR, LAST_YEAR, day_number, year_of
from kizami.core.zone_file import ZoneFile, read_zone_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS_PER_DAY = 86_400
BEGINNING_S = day_number(FIRST_YEAR, 1, 3) * _SECONDS_PER_DAY
"""The first instant that has a local time, in UTC seconds: every local date lies in the years 1 to 9999."""
END_S = day_number(LAST_YEAR, 12, 30) * _SECONDS_PER_DAY
"""The end of the last such day."""

_FIRST_HORIZON_YEAR = 2040
_NOT_A_PLACE = frozenset({"Factory", "localtime", "posixrules"})


class Span(NamedTuple):
    """From `start` until before `end` (UTC seconds), local time is UTC plus `offset` seconds."""

    start: int
    end: int
    offset: int


class Transition(NamedTuple):
    """At the instant `at` (UTC seconds) the offset changes from `before` to `after` (seconds)."""

    at: int
    before: int
    after: int


class _Timeline(NamedTuple):
    """The spans of a zone up to an instant, and its first passes among them with the local times at which they end."""

    until: int
    starts: tuple[int, ...]
    spans: tuple[Span, ...]
    pass_starts: tuple[int, ...]
    pass_local_ends: tuple[int, ...]
    passes: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A zone of the database, equal to another of the same name.

    What it has answered never changes; it works out later years when it is asked for them.
    """

    name: str
    tzinfo: ZoneInfo = field(compare=False, repr=False)
    _file: ZoneFile = field(compare=False, repr=False)
    _timeline: _Timeline = field(init=False, compare=False, repr=False)
    _recent_pass: Span = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_timeline", _draw(self._file, _FIRST_HORIZON_YEAR))
        object.__setattr__(self, "_recent_pass", self._timeline.passes[-1])

    def __str__(self) -> str:
        return self.name

    def offset_at(self, at_s: int) -> int:
        """Return the seconds that local time is ahead of UTC at an instant in UTC seconds."""
        return self.span_at(at_s).offset

    def span_at(self, at_s: int) -> Span:
        """Return the span in which an instant lies."""
        timeline = self._timeline_past(at_s)
        return timeline.spans[max(0, bisect_right(timeline.starts, at_s) - 1)]

    def transitions(self, after_s: int, until_s: int) -> Iterator[Transition]:
        """Yield every change of the offset in (after, until], in order."""
        span = self.span_at(after_s)
        while span.end <= until_s and span.end < END_S:
            following = self.span_at(span.end)
            yield Transition(span.end, span.offset, following.offset)
            span = following

    def first_pass_at(self, at_s: int) -> Span:
        """Return the last first pass that begins at or before an instant; quick when it is the same as last time."""
        recent = self._recent_pass
        if not recent[0] <= at_s < recent[1]:
            timeline = self._timeline_past(at_s)
            recent = timeline.passes[max(0, bisect_right(timeline.pass_starts, at_s) - 1)]
            object.__setattr__(self, "_recent_pass", recent)
        return recent

    def first_pass_beyond(self, local_s: int) -> Span | None:
        """Return the first pass that is the first to show a local time later than this one; None after the last."""
        timeline = self._timeline
        while timeline.pass_local_ends[-1] <= local_s:
            if timeline.until >= END_S:
                return None
            timeline = self._timeline_past(timeline.until)
        return timeline.passes[bisect_right(timeline.pass_local_ends, local_s)]

    def first_passes(self, from_s: int, until_s: int) -> tuple[Span, ...]:
        """Return the last first pass that begins at or before `from_s`, and all that follow until `until_s`."""
        timeline = self._timeline_past(until_s)
        first = max(0, bisect_right(timeline.pass_starts, from_s) - 1)
        return timeline.passes[first : bisect_right(timeline.pass_starts, until_s)]

    def repeats_from(self) -> int:
        """Return an instant (UTC seconds) after which the zone's years repeat every 400 years, as the calendar does."""
        return self._file.changes[-1].at if self._file.changes else BEGINNING_S

    def _timeline_past(self, at_s: int) -> _Timeline:
        """Return a timeline that reaches past an instant, or to the end. Threads that meet here only work twice."""
        timeline = self._timeline
        while timeline.until <= min(at_s, END_S - 1):
            known_year = year_of(timeline.until // _SECONDS_PER_DAY).number
            wanted_year = max(year_of(at_s // _SECONDS_PER_DAY).number, 2 * known_year - _FIRST_HORIZON_YEAR) + 40
            timeline = _draw(self._file, min(wanted_year, LAST_YEAR))
            object.__setattr__(self, "_timeline", timeline)
        return timeline


class _BundledZoneInfo(ZoneInfo):
    """A ZoneInfo with the bundled data, which can be pickled: it is loaded again by its name."""

    def __reduce__(self) -> tuple[Callable[[str], ZoneInfo], tuple[str]]:
        return _tzinfo, (self.key,)


def load_zone(name: str) -> TimeZone:
    """Return the zone of an IANA name, spelt exactly as in the database. Raises TimeZoneError for anything else."""
    if not isinstance(name, str) or name not in zone_names():
        raise _refusal(name)
    return _load(name)


@lru_cache(maxsize=1024)
def _load(name: str) -> TimeZone:
    try:
        return TimeZone(name, _tzinfo(name), read_zone_file(zone_bytes(name)))
    except (OSError, ValueError) as error:
        message = f"Time zone {name!r} has no readable data: {error}."
        raise TimeZoneError(message, remedy="Install the package tzdata again.", time_zone=name) from error


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return all names that `load_zone` takes."""
    listed = pkgutil.get_data("tzdata", "zones")
    if listed is None:
        raise TimeZoneError("The time-zone database is missing.", remedy="Install the package tzdata again.")
    return frozenset(listed.decode("ascii").split()) - _NOT_A_PLACE


def tzdata_version() -> str:
    """Return the edition of the time-zone database in use, such as `2026a`."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1024)
def _tzinfo(name: str) -> ZoneInfo:
    return _BundledZoneInfo.from_file(BytesIO(zone_bytes(name)), key=name)


def zone_bytes(name: str) -> bytes:
    """Return the zone file of a name that is known to be listed."""
    data = pkgutil.get_data("tzdata", f"zoneinfo/{name}")
    if data is None:
        message = f"Time zone {name!r} has no data."
        raise TimeZoneError(message, remedy="Install the package tzdata again.", time_zone=name)
    return data


def _refusal(name: object) -> TimeZoneError:
    """Return the error for a name that isn't a zone, with the nearest name that is."""
    shown = str(name)[:80]
    folded = shown.strip(" \t\n\"'").replace(" ", "_").casefold()
    meant = next((known for known in sorted(zone_names()) if known.casefold() == folded), None)
    remedy = f'Write "{meant}".' if meant else 'Give an IANA name such as "Europe/Berlin" or "UTC".'
    if any(character.isdigit() for character in shown):
        reason = "is not an IANA name; fixed offsets are refused because they ignore changes of the local clock"
    else:
        reason = f"is not an IANA name of the time-zone database {tzdata_version()}"
    return TimeZoneError(f"Time zone {shown!r} {reason}.", remedy=remedy, time_zone=shown)


def _draw(file: ZoneFile, until_year: int) -> _Timeline:
    """Work out the spans of a zone up to the last change in a year, or all if no rule goes on after the listed ones."""
    spans: list[Span] = []
    start, offset = BEGINNING_S, file.first_offset
    for at, following in _changes(file, until_year):
        if following != offset:
            spans.append(Span(start, at, offset))
            start, offset = at, following
    if file.rule is None or until_year == LAST_YEAR or not spans:
        spans.append(Span(start, END_S, offset))
    passes = tuple(_first_passes(spans))
    starts, pass_starts = (tuple(one.start for one in some) for some in (spans, passes))
    local_ends = tuple(one.end + one.offset for one in passes)
    return _Timeline(spans[-1].end, starts, tuple(spans), pass_starts, local_ends, passes)


def _changes(file: ZoneFile, until_year: int) -> list[tuple[int, int]]:
    """Return instants and offsets, the listed ones and those of the rule; of two at one instant the later counts."""
    changes: dict[int, int] = dict(file.changes)
    if file.rule is not None:
        listed_until = file.changes[-1].at if file.changes else BEGINNING_S
        years = range(year_of(listed_until // _SECONDS_PER_DAY).number, until_year + 1)
        ruled = sorted((change for year in years for change in file.rule.changes(year)), key=lambda change: change.at)
        changes |= {at: offset for at, offset in ruled if listed_until < at < END_S}
    return sorted(changes.items())


def _first_passes(spans: list[Span]) -> Iterator[Span]:
    """Yield the part of each span in which the local time is later than it ever was."""
    shown_until = BEGINNING_S + spans[0].offset
    for start, end, offset in spans:
        if end + offset > shown_until:
            yield Span(max(start, shown_until - offset), end, offset)
            shown_until = end + offset
