"""Zone files (TZif, RFC 9636): the list of transitions, and the rule for all years after it."""

from __future__ import annotations

import re
import struct
from calendar import isleap, monthrange
from dataclasses import dataclass
from typing import NamedTuple

from kizami.core.year import day_number, weekday_of

_HEADER = struct.Struct(">4sc15x6l")
_SECONDS_PER_DAY = 86_400
_LONG, _SHORT = 8, 4
_MARCH_FIRST = 60

_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_DATE = rf"(J?\d+|M\d+\.\d+\.\d+)(?:/({_TIME}))?"
_FOOTER = re.compile(rf"{_NAME}({_TIME})(?:{_NAME}({_TIME})?,{_DATE},{_DATE})?", re.ASCII)


class Change(NamedTuple):
    """From the instant `at` (UTC seconds) on, local time is UTC plus `offset` seconds."""

    at: int
    offset: int


@dataclass(frozen=True, slots=True)
class YearlyRule:
    """Two changes a year, each on a day rule at a local time."""

    standard_offset: int
    daylight_offset: int
    start_day: str
    start_time: int
    end_day: str
    end_time: int

    def changes(self, year: int) -> tuple[Change, Change]:
        """Return the year's two changes; each local time is read on the clock that ends with it."""
        start = _day_of(self.start_day, year) * _SECONDS_PER_DAY + self.start_time - self.standard_offset
        end = _day_of(self.end_day, year) * _SECONDS_PER_DAY + self.end_time - self.daylight_offset
        return Change(start, self.daylight_offset), Change(end, self.standard_offset)


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """What a zone file says: the offset before all changes, the listed changes, and the rule after them if any."""

    first_offset: int
    changes: tuple[Change, ...]
    rule: YearlyRule | None


def read_zone_file(data: bytes) -> ZoneFile:
    """Read the 64-bit part of a zone file of version 2 or later. Raises ValueError if it isn't one."""
    start = _block_size(data, 0, _SHORT)
    size = _block_size(data, start, _LONG)
    *_, count, type_count, _characters = _header(data, start)
    position = start + _HEADER.size
    instants = struct.unpack_from(f">{count}q", data, position)
    kinds = data[position + _LONG * count : position + (_LONG + 1) * count]
    position += (_LONG + 1) * count
    offsets = [struct.unpack_from(">l", data, position + 6 * kind)[0] for kind in range(type_count)]
    changes = tuple(Change(at, offsets[kind]) for at, kind in zip(instants, kinds, strict=True))
    return ZoneFile(offsets[0], changes, _read_footer(data[start + size :].decode("ascii").strip("\n")))


def _header(data: bytes, start: int) -> tuple[int, int, int, int, int, int]:
    """Return the six counts of a block: UT flags, standard flags, leap seconds, changes, types, name characters."""
    if len(data) < start + _HEADER.size:
        raise ValueError("the zone file is cut short")
    magic, version, *counts = _HEADER.unpack_from(data, start)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a zone file of version 2 or later")
    flags, standard, leaps, changes, types, characters = counts
    return flags, standard, leaps, changes, types, characters


def _block_size(data: bytes, start: int, width: int) -> int:
    flags, standard, leaps, changes, types, characters = _header(data, start)
    return _HEADER.size + changes * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + flags


def _read_footer(text: str) -> YearlyRule | None:
    """Return the rule of a footer such as `EST5EDT,M3.2.0,M11.1.0`; None if the last offset stays for good."""
    match = _FOOTER.fullmatch(text)
    if match is None:
        raise ValueError(f"the zone file ends with {text!r}, which is not a rule")
    standard, daylight, start_day, start_time, end_day, end_time = match.groups()
    if start_day is None:
        return None
    standard_offset = -_seconds(standard)
    return YearlyRule(
        standard_offset,
        -_seconds(daylight) if daylight else standard_offset + 3600,
        start_day,
        _seconds(start_time or "2"),
        end_day,
        _seconds(end_time or "2"),
    )


def _seconds(text: str) -> int:
    """Return the seconds of `[+-]h[:m[:s]]`."""
    hours, minutes, seconds = (*(int(part) for part in text.lstrip("+-").split(":")), 0, 0)[:3]
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if text.startswith("-") else 1)


def _day_of(rule: str, year: int) -> int:
    """Return the day number of a day rule: `Mm.w.d` (d-th weekday, w 5 = last), `Jn` (leap day not counted) or `n`."""
    if rule.startswith("M"):
        return _weekday_of_month(year, *(int(part) for part in rule[1:].split(".")))
    new_year = day_number(year, 1, 1)
    if not rule.startswith("J"):
        return new_year + int(rule)
    nth = int(rule[1:])
    return new_year + nth - 1 + (1 if isleap(year) and nth >= _MARCH_FIRST else 0)


def _weekday_of_month(year: int, month: int, week: int, weekday: int) -> int:
    """Return the day number of the week-th weekday (Sunday is 0) of a month."""
    first = day_number(year, month, 1)
    day = first + (weekday - weekday_of(first)) % 7 + 7 * (week - 1)
    return day - 7 if day - first >= monthrange(year, month)[1] else day
