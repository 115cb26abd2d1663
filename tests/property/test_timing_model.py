"""Timing against a model of another shape: walk the UTC minutes, read the local clock at each, keep what matches."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kizami.core.errors import CronError
from kizami.core.timing import (
    count_between,
    cron_timing,
    decide_misfire,
    fires,
    interval_timing,
    is_planned,
    latest_at_or_before,
    next_after,
)
from kizami.core.zone import load_zone

ZONES = [
    "America/New_York", "Europe/Berlin", "Europe/London", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia",
    "Asia/Pyongyang", "America/Mexico_City", "Asia/Amman", "Asia/Gaza", "Africa/Casablanca", "Asia/Kathmandu",
    "Antarctica/Troll", "Europe/Dublin", "America/Nuuk", "Pacific/Kwajalein", "America/Havana", "UTC",
]  # fmt: skip
BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
MINUTE_MS = 60_000
MINUTES_WALKED = 2100
SEEN_BEFORE = timedelta(hours=26)  # longer than any local time was ever shown again after


class Entry(NamedTuple):
    """An entry of a list, as the numbers it was made of; without a first value it is a star."""

    first: int | None
    last: int | None
    step: int | None

    def text(self) -> str:
        last = "" if self.last is None else f"-{self.last}"
        step = "" if self.step is None else f"/{self.step}"
        return ("*" if self.first is None else f"{self.first}{last}") + step

    def holds(self, value: int, least: int, most: int) -> bool:
        first = least if self.first is None else self.first
        last = most if self.first is None else first if self.last is None else self.last
        return first <= value <= last and (value - first) % (self.step or 1) == 0


class Rule(NamedTuple):
    """An expression as the model knows it."""

    fields: tuple[tuple[Entry, ...], ...]

    def text(self) -> str:
        return " ".join(",".join(entry.text() for entry in entries) for entries in self.fields)

    def holds(self, index: int, *values: int) -> bool:
        return any(entry.holds(value, *BOUNDS[index]) for entry in self.fields[index] for value in values)

    def on(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        dated, named = self.holds(2, day.day), self.holds(4, weekday, *([7] if weekday == 0 else []))
        stars = [",".join(entry.text() for entry in self.fields[index]) == "*" for index in (2, 4)]
        return self.holds(3, day.month) and (dated and named if any(stars) else dated or named)

    def never_fires(self) -> bool:
        leap_year = (date(2000, 1, 1) + timedelta(days=n) for n in range(366))
        return not any(self.on(day) for day in leap_year)

    def at(self, local: datetime) -> bool:
        return self.holds(0, local.minute) and self.holds(1, local.hour) and self.on(local.date())


@st.composite
def entries(draw: st.DrawFn, index: int) -> Entry:
    least, most = BOUNDS[index]
    kind = draw(st.sampled_from(["star", "number", "range", "star step", "range step"]))
    first = draw(st.integers(least, most))
    step = draw(st.integers(1, most - least + 1)) if "step" in kind else None
    if "star" in kind:
        return Entry(None, None, step)
    return Entry(first, None if kind == "number" else draw(st.integers(first, most)), step)


def fields(index: int) -> st.SearchStrategy[tuple[Entry, ...]]:
    star = st.just((Entry(None, None, None),))
    return st.one_of(star, st.lists(entries(index), min_size=1, max_size=3).map(tuple))


rules = st.tuples(*(fields(index) for index in range(5))).map(Rule)
near_rules = st.tuples(fields(0), fields(1), *[st.just((Entry(None, None, None),))] * 3).map(Rule)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and a moment, mostly just before or within a change of its offset."""
    zone = draw(st.sampled_from(ZONES))
    known = list(load_zone(zone).transitions(0, 4_000_000_000))
    near = st.integers(0, 4_000_000_000)
    often = draw(st.integers(0, 9)) > 0
    if known and often:
        near = st.builds(lambda change, away: change.at + away, st.sampled_from(known), st.integers(-100_000, 100_000))
    milliseconds = draw(st.sampled_from([0, 0, 1, 999]))
    return zone, datetime.fromtimestamp(draw(near), UTC) + timedelta(milliseconds=milliseconds)


def model(texts: list[Rule], zone: str, after: datetime, minutes: int) -> list[datetime]:
    """Return the fires in (after, after + minutes], found by reading the local clock at every UTC minute."""
    tzinfo = load_zone(zone).tzinfo
    found: list[datetime] = []
    shown: set[datetime] = set()
    at = (after - SEEN_BEFORE).replace(second=0, microsecond=0)
    while at <= after + timedelta(minutes=minutes):
        local = at.astimezone(tzinfo).replace(tzinfo=None, fold=0)
        if local not in shown and at > after and any(rule.at(local) for rule in texts):
            found.append(at)
        shown.add(local)
        at += timedelta(minutes=1)
    return found


def ms(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(near_rules, rules), min_size=1, max_size=3), moments())
@example([Rule(tuple(((Entry(None, None, None),),) * 5))], ("Pacific/Apia", datetime(2011, 12, 29, 12, tzinfo=UTC)))
@example([Rule(tuple(((Entry(None, None, None),),) * 5))], ("Pacific/Kwajalein", datetime(1969, 9, 30, 9, tzinfo=UTC)))
def test_every_question_agrees_with_walking_the_minutes(texts: list[Rule], moment: tuple[str, datetime]) -> None:
    """B010, B011, B013, B014, B016, B017: around every kind of change, for unions too."""
    zone, after = moment
    if any(rule.never_fires() for rule in texts):
        with pytest.raises(CronError, match="never fires"):
            cron_timing([rule.text() for rule in texts], zone)
        return
    timing = cron_timing([rule.text() for rule in texts], zone)
    expected = [ms(at) for at in model(texts, zone, after, MINUTES_WALKED)]
    start, until = ms(after), ms(after) + MINUTES_WALKED * MINUTE_MS
    planned = fires(timing, start, 0)
    assert list(takewhile(lambda at: at <= until, islice(planned, len(expected) + 1))) == expected
    assert count_between(timing, start, until, 0) == len(expected)
    for at in expected[:3] + expected[-3:]:
        assert is_planned(timing, at, 0)
        assert latest_at_or_before(timing, at, 0) == at
    if expected:
        decided = decide_misfire(timing, expected[0], until, 0)
        assert (decided.fire, decided.dropped) == (expected[0], len(expected) - 1)
        assert decided.next == next_after(timing, until, 0) > until
        if len(expected) > 1:
            assert (decided.dropped_first, decided.dropped_last) == (expected[1], expected[-1])


@settings(max_examples=60, deadline=None)
@given(rules, st.integers(1, 9950), st.integers(0, 366), st.integers(0, 1439))
def test_rare_dates_agree_with_walking_the_days(rule: Rule, year: int, day: int, minute: int) -> None:
    """B004: over a century change and back again, forwards and backwards."""
    if rule.never_fires():
        with pytest.raises(CronError, match="never fires"):
            cron_timing(rule.text())
        return
    timing = cron_timing(rule.text())
    after = datetime(year, 1, 3, tzinfo=UTC) + timedelta(days=day, minutes=minute)
    times = [n for n in range(1440) if rule.holds(0, n % 60) and rule.holds(1, n // 60)]
    midnight = after.replace(hour=0, minute=0)
    if rule.on(midnight) and any(n > minute for n in times):
        expected = midnight + timedelta(minutes=min(n for n in times if n > minute))
    else:
        days = (midnight + timedelta(days=n) for n in range(1, 366 * 12))
        expected = next(at for at in days if rule.on(at)) + timedelta(minutes=times[0])
    assert next_after(timing, ms(after), 0) == ms(expected)
    assert latest_at_or_before(timing, ms(expected), 0) == ms(expected)
    before = latest_at_or_before(timing, ms(expected) - 1, 0)
    assert before is None or before <= ms(after)
    assert count_between(timing, ms(after), ms(expected), 0) == 1


@settings(max_examples=200, deadline=None)
@given(st.integers(1000, 10**9), st.integers(-(10**12), 10**12), st.integers(-(10**6), 10**10), st.integers(0, 10**10))
def test_intervals_agree_with_their_grid(every: int, anchor: int, ahead: int, length: int) -> None:
    """B022: nothing but the anchor and the interval decides; no question depends on when it is asked."""
    timing, after, until = interval_timing(every), anchor + ahead, anchor + ahead + length
    following = next_after(timing, after, anchor)
    assert following > after
    assert following >= anchor + every
    assert (following - anchor) % every == 0
    assert following - every <= max(after, anchor)
    assert is_planned(timing, following, anchor)
    latest = latest_at_or_before(timing, until, anchor)
    assert (latest is None) == (until < anchor + every)
    if latest is not None:
        assert latest <= until < latest + every
        assert is_planned(timing, latest, anchor)
    expected = 0 if latest is None or latest < following else (latest - following) // every + 1
    assert count_between(timing, after, until, anchor) == expected


@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_rule_never_shows_a_local_time_twice(zone: str) -> None:
    """Across all changes from 2000 to 2035, each planned instant shows a later local time than the one before."""
    loaded = load_zone(zone)
    timing = cron_timing("*/30 * * * *", zone)
    for change in loaded.transitions(946_684_800, 2_051_222_400):
        planned = list(islice(fires(timing, (change.at - 7200) * 1000, 0), 10))
        local = [at // 1000 + loaded.offset_at(at // 1000) for at in planned]
        assert local == sorted(set(local))
        assert all(one % 1800 == 0 for one in local)
