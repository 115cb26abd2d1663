"""Faults that schedulers are known for, each as the right answer to the question that went wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from kizami.core.times import to_datetime, to_epoch_ms
from kizami.core.timing import (
    CronTiming,
    Timing,
    count_between,
    cron_timing,
    decide_misfire,
    fires,
    first_fire,
    interval_timing,
    is_planned,
    latest_at_or_before,
    next_after,
)

MINUTE_MS = 60_000
DAY_MS = 86_400_000


def ms(text: str) -> int:
    return to_epoch_ms(datetime.fromisoformat(text))


def utc(at_ms: int) -> str:
    return to_datetime(at_ms).strftime("%Y-%m-%dT%H:%MZ")


def plan(expression: str, zone: str, after: str, count: int) -> list[str]:
    return [utc(at) for at in islice(fires(cron_timing(expression, zone), ms(after), 0), count)]


def test_month_end_rules_follow_the_local_date_behind_utc() -> None:
    """B005."""
    assert plan("20 * 27-30 * *", "America/Denver", "2026-03-01T06:20Z", 1) == ["2026-03-27T06:20Z"]
    assert plan("20 * 27-30 * *", "America/Denver", "2026-02-28T08:30Z", 1) == ["2026-02-28T09:20Z"]


def test_an_hourly_rule_passes_the_gap_and_the_repeated_hour() -> None:
    """B010."""
    assert plan("0 * * * *", "Europe/Berlin", "2026-03-28T23:30Z", 5) == [
        "2026-03-29T00:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z", "2026-03-29T03:00Z", "2026-03-29T04:00Z",
    ]  # fmt: skip
    assert plan("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:15Z", 6) == [
        "2026-10-24T23:30Z", "2026-10-25T00:00Z", "2026-10-25T00:30Z",
        "2026-10-25T02:00Z", "2026-10-25T02:30Z", "2026-10-25T03:00Z",
    ]  # fmt: skip


def test_from_inside_the_repeated_hour_the_next_is_a_new_local_time() -> None:
    """B010: asked between the two passes and within the second one."""
    for after in ("2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:29:59.999Z", "2026-10-25T01:59Z"):
        assert plan("*/30 * * * *", "Europe/Berlin", after, 1) == ["2026-10-25T02:00Z"]
    assert not is_planned(cron_timing("30 2 * * *", "Europe/Berlin"), ms("2026-10-25T01:30Z"), 0)
    assert latest_at_or_before(cron_timing("30 2 * * *", "Europe/Berlin"), ms("2026-10-25T01:45Z"), 0) == ms(
        "2026-10-25T00:30Z"
    )


def test_the_hour_before_midnight_repeats_and_midnight_comes_once() -> None:
    """B011."""
    assert plan("0 0 * * *", "Africa/Cairo", "2026-10-28T21:05Z", 2) == ["2026-10-29T22:00Z", "2026-10-30T22:00Z"]
    assert plan("30 23 * * *", "Africa/Cairo", "2026-10-28T21:05Z", 2) == ["2026-10-29T20:30Z", "2026-10-30T21:30Z"]


def test_a_yearly_time_inside_the_gap_waits_for_a_year_that_has_it() -> None:
    """B013."""
    assert plan("30 1 29 3 *", "Europe/London", "2026-03-01T00:00Z", 1) == ["2027-03-29T00:30Z"]


def test_gaps_and_repeats_of_half_an_hour() -> None:
    """B014."""
    assert plan("50 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", 2) == [
        "2026-04-04T14:50Z",
        "2026-04-05T15:20Z",
    ]
    assert plan("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", 1) == ["2026-10-04T15:15Z"]


def test_a_calendar_day_that_is_missing() -> None:
    """B016: a gap of 24 hours; an interval doesn't notice."""
    assert plan("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00Z", 2) == ["2011-12-29T19:00Z", "2011-12-30T19:00Z"]
    assert plan("0 9 30 * *", "Pacific/Apia", "2011-12-01T00:00Z", 1) == ["2012-01-29T19:00Z"]
    anchor = ms("2011-12-28T19:00Z")
    assert list(islice(fires(interval_timing(DAY_MS), anchor, anchor), 4)) == [anchor + n * DAY_MS for n in range(1, 5)]


def test_offset_changes_that_are_not_daylight_saving() -> None:
    """B017: a standard time moved, daylight saving that was abolished, and its last change."""
    assert plan("45 23 * * *", "Asia/Pyongyang", "2018-05-03T00:00Z", 2) == ["2018-05-03T15:15Z", "2018-05-05T14:45Z"]
    assert plan("30 2 * * *", "America/Mexico_City", "2023-04-01T00:00Z", 3) == [
        "2023-04-01T08:30Z", "2023-04-02T08:30Z", "2023-04-03T08:30Z",
    ]  # fmt: skip
    assert plan("0 0 * * *", "Asia/Amman", "2022-02-23T12:00Z", 2) == ["2022-02-23T22:00Z", "2022-02-25T21:00Z"]


@pytest.mark.parametrize("latency_ms", [0, 1, 700, 1999, 37_000])
def test_an_interval_keeps_its_phase_whatever_the_latency(latency_ms: int) -> None:
    """B022: 144 fires in a day, each on the anchor's grid."""
    timing, anchor = interval_timing(timedelta(seconds=600)), ms("2026-01-01T00:00:07Z")
    planned = first_fire(timing, anchor)
    fired = []
    while planned <= anchor + DAY_MS:
        decided = decide_misfire(timing, planned, planned + latency_ms, anchor)
        fired.append(decided.fire)
        planned = decided.next
    assert fired == [anchor + n * 600_000 for n in range(1, 145)]


def test_a_run_longer_than_the_interval_skips_to_the_next_point_of_the_grid() -> None:
    """B022."""
    decided = decide_misfire(interval_timing(10_000), 50_007, 74_000, 7)
    assert decided == (50_007, 80_007, 2, 60_007, 70_007)


def test_no_number_of_missed_ticks_stops_a_schedule() -> None:
    """B023: five hours and ten years down; one fires, the rest are counted without being visited."""
    timing = cron_timing("* * * * *", "America/New_York")
    planned = ms("2026-01-01T00:00Z")
    after_hours = decide_misfire(timing, planned, planned + 300 * MINUTE_MS, 0)
    assert after_hours == (planned, planned + 301 * MINUTE_MS, 300, planned + MINUTE_MS, planned + 300 * MINUTE_MS)
    now = ms("2036-01-01T00:00:30Z")
    after_years = decide_misfire(timing, planned, now, 0)
    all_minutes = (now - planned) // MINUTE_MS
    assert after_years.dropped == all_minutes - 10 * 60  # ten repeated hours, each skipped whole
    assert after_years.next == ms("2036-01-01T00:01Z")


def test_the_count_of_missed_ticks_is_exact() -> None:
    """B023: against listing them."""
    for timing in (
        cron_timing("*/7 */3 * * *", "Europe/Berlin"),
        cron_timing(("0 * * * *", "*/30 1-5 * * 0", "30 2 1 * *"), "Africa/Cairo"),
        interval_timing(3_601_000),
    ):
        after, until = ms("2025-12-31T17:31Z"), ms("2027-01-03T01:00Z")
        listed = 0
        for at in fires(timing, after, 12_345):
            if at > until:
                break
            listed += 1
        assert count_between(timing, after, until, 12_345) == listed


def test_a_new_entry_never_fires_the_moment_it_is_created() -> None:
    """B029: strictly after registration, by the millisecond."""
    timing = cron_timing("0 6 * * *")
    assert first_fire(timing, ms("2026-01-01T05:59:12Z")) == ms("2026-01-01T06:00Z")
    assert first_fire(timing, ms("2026-01-01T06:00Z")) == ms("2026-01-02T06:00Z")
    assert first_fire(timing, ms("2026-01-01T06:00:00.400Z")) == ms("2026-01-02T06:00Z")
    assert first_fire(interval_timing(60_000), 5) == 60_005


def test_a_tick_before_its_time_changes_nothing() -> None:
    """B026: after a step back of the clock the stored plan stands."""
    timing = cron_timing("*/5 * * * *")
    assert decide_misfire(timing, 600_000, 599_999, 0) == (None, 600_000, 0, None, None)
    assert decide_misfire(timing, 600_000, -5, 0).next == 600_000


def test_a_union_ticks_once_where_its_expressions_meet() -> None:
    timing = cron_timing(("*/15 8-20 * * *", "0 8,21 * * *", "0 21 * * *"), "Asia/Tokyo")
    day = [utc(at) for at in islice(fires(timing, ms("2026-01-01T10:59Z"), 0), 6)]
    assert day == [
        "2026-01-01T11:00Z", "2026-01-01T11:15Z", "2026-01-01T11:30Z", "2026-01-01T11:45Z",
        "2026-01-01T12:00Z", "2026-01-01T23:00Z",
    ]  # fmt: skip
    assert count_between(timing, ms("2026-01-01T00:00Z"), ms("2026-01-02T00:00Z"), 0) == 13 * 4 + 1


def test_questions_about_the_plan_agree_before_1970_too() -> None:
    timing: Timing = cron_timing("0 0 * * *", "Europe/Berlin")
    assert next_after(timing, -1, 0) == ms("1970-01-01T23:00Z")
    assert latest_at_or_before(timing, -1, 0) == ms("1969-12-31T23:00Z")
    assert isinstance(timing, CronTiming)
    assert is_planned(timing, ms("1969-12-31T23:00Z"), 0)
    assert not is_planned(timing, ms("1969-12-31T23:00Z") + 1, 0)


def test_an_interval_has_no_planned_instant_before_its_first() -> None:
    timing = interval_timing(5_000)
    assert latest_at_or_before(timing, 104_999, 100_000) is None
    assert latest_at_or_before(timing, 105_000, 100_000) == 105_000
    assert not is_planned(timing, 100_000, 100_000)
    assert count_between(timing, 0, 104_999, 100_000) == 0
    assert next_after(timing, 0, 100_000) == 105_000


def test_the_last_instant_before_the_year_10000_is_an_error_with_a_remedy() -> None:
    with pytest.raises(Exception, match="no further instant in UTC"):
        next_after(cron_timing("0 0 1 1 *"), to_epoch_ms(datetime(9999, 6, 1, tzinfo=UTC)), 0)
