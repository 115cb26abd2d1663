"""The calendar as bits agrees with the calendar of the standard library."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from kizami.core.local_minutes import NEVER, LocalMinutes, unite
from kizami.core.year import DAYS_ALL, MONTHS_ALL, WEEKDAYS_ALL, date_of, day_number, year_at, year_days, year_of


def test_every_year_begins_and_ends_where_it_should() -> None:
    for number in range(1, 10_000):
        first, last = day_number(number, 1, 1), day_number(number, 12, 31)
        assert year_of(first) == year_of(last) == year_at(number)
        assert year_at(number).first_day == first


def test_the_shape_of_a_year_tells_its_weekdays_and_its_leap_day() -> None:
    fridays_the_13th = year_days(MONTHS_ALL, 1 << 13, 1 << 5, either=False)
    leap_days = year_days(1 << 2, 1 << 29, WEEKDAYS_ALL, either=False)
    for number in range(1999, 2029):
        year = year_at(number)
        dates = [date(number, 1, 1) + timedelta(days=n) for n in range(366 if number % 4 == 0 else 365)]
        expected = [n for n, day in enumerate(dates) if day.day == 13 and day.isoweekday() == 5]
        assert [n for n in range(366) if fridays_the_13th[year.shape] >> n & 1] == expected
        assert bool(leap_days[year.shape]) == (number % 4 == 0)
        assert date_of(year.first_day) == dates[0]


def test_a_day_needs_both_kinds_or_either() -> None:
    """In 2026, a year that begins on a Thursday."""
    shape = year_at(2026).shape
    both = year_days(1 << 1, 1 << 1 | 1 << 2, 1 << 5, either=False)[shape]
    either = year_days(1 << 1, 1 << 1 | 1 << 2, 1 << 5, either=True)[shape]
    assert both == 1 << 1
    assert either == 1 << 0 | 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29


@pytest.mark.parametrize(
    "empty",
    [
        LocalMinutes(0, year_days(MONTHS_ALL, DAYS_ALL, WEEKDAYS_ALL, either=False)),
        LocalMinutes(1, year_days(1 << 2, 1 << 30, WEEKDAYS_ALL, either=False)),
    ],
)
def test_an_empty_set_has_no_minute_in_either_direction(empty: LocalMinutes) -> None:
    assert not empty
    assert empty.next_after(0) == NEVER
    assert empty.last_until(0) == -NEVER
    assert empty.count(0, 10**9) == 0
    assert unite((empty,)) == ()
