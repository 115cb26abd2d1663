"""The calendar as whole years of bits: fourteen shapes of year, each day of a year one bit.

A Gregorian year is fully described by the weekday it begins on and whether it is a leap year. A rule about months,
days and weekdays is therefore fourteen bit sets, and looking for a day is a shift. Day numbers count from 1970-01-01.
"""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

FIRST_YEAR = 1
LAST_YEAR = 9999
CALENDAR_REPEATS_AFTER_YEARS = 400
MONTHS_ALL = 0b1_1111_1111_1110
DAYS_ALL = 0xFFFF_FFFE
WEEKDAYS_ALL = 0b111_1111

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = 4  # a Thursday, with Sunday as 0
_DAYS_BEFORE_1970 = _EPOCH_ORDINAL - 1
_DAYS_IN_400_YEARS = 146_097
_LATEST_START = 2  # no year begins more than two days before or after a calendar of equally long years says
_WEEK = 7
_EVERY_WEEK_OF_A_YEAR = sum(1 << _WEEK * week for week in range(54))
_MONTH_STARTS_COMMON = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_MONTH_STARTS_LEAP = (*_MONTH_STARTS_COMMON[:2], *(start + 1 for start in _MONTH_STARTS_COMMON[2:]))

YearDays = tuple[int, ...]
"""One bit set per shape of year: bit n is the n-th day of the year, from zero."""


class Year(NamedTuple):
    """A year, where it begins as a day number, and which of the fourteen shapes it has."""

    number: int
    first_day: int
    shape: int


@lru_cache(maxsize=1024)
def year_at(number: int) -> Year:
    """Return a year by its number."""
    past = number - 1
    first = 365 * past + past // 4 - past // 100 + past // 400 - _DAYS_BEFORE_1970
    return Year(number, first, weekday_of(first) + _WEEK * isleap(number))


@lru_cache(maxsize=1024)
def year_of(day: int) -> Year:
    """Return the year that a day number lies in."""
    guess = year_at((400 * (day + _DAYS_BEFORE_1970 + _LATEST_START) // _DAYS_IN_400_YEARS) + 1)
    return guess if guess.first_day <= day else year_at(guess.number - 1)


def day_number(year: int, month: int, day: int) -> int:
    """Return the day number of a date."""
    return date(year, month, day).toordinal() - _EPOCH_ORDINAL


def weekday_of(day: int) -> int:
    """Return the weekday of a day number, with Sunday as 0."""
    return (day + _EPOCH_WEEKDAY) % _WEEK


def date_of(day: int) -> date:
    """Return the date of a day number."""
    return date.fromordinal(day + _EPOCH_ORDINAL)


def year_days(months: int, days: int, weekdays: int, *, either: bool) -> YearDays:
    """Return the days in `months` that are in `days` and in `weekdays` or, with `either`, in one of them.

    Bit n of a set stands for month n, day of month n, weekday n with Sunday as 0.
    """
    weekly = _repeat_weekly(weekdays)
    shapes: list[int] = []
    for starts in (_MONTH_STARTS_COMMON, _MONTH_STARTS_LEAP):
        in_months, dated = _months_and_dates(starts, months, days)
        for first_weekday in range(_WEEK):
            on_weekday = weekly >> first_weekday
            shapes.append(in_months & (dated | on_weekday) if either else dated & on_weekday)
    return tuple(shapes)


@lru_cache(maxsize=128)
def _repeat_weekly(weekdays: int) -> int:
    """Return the weekdays as bits of a year that begins on a Sunday."""
    return weekdays * _EVERY_WEEK_OF_A_YEAR


def _months_and_dates(starts: tuple[int, ...], months: int, days: int) -> tuple[int, int]:
    """Return all days of the months, and those among them with the wanted day of the month."""
    in_months = dated = 0
    for month, (start, end) in enumerate(pairwise(starts), 1):
        if months >> month & 1:
            whole = (1 << end - start) - 1
            in_months |= whole << start
            dated |= (days >> 1 & whole) << start
    return in_months, dated
