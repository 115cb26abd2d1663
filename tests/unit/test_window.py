"""Windows: what is inside, and the check that looks at every offset in force."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from kizami.core.errors import DefinitionError, TimeZoneError
from kizami.core.times import to_epoch_ms
from kizami.core.timing import CronTiming, IntervalTiming, Timing, cron_timing, fires, interval_timing
from kizami.core.window import Window, check_ticks, local_date
from kizami.core.zone import load_zone

NOW = to_epoch_ms(datetime.fromisoformat("2026-01-01T00:00Z"))
TOKYO = load_zone("Asia/Tokyo")


def ms(text: str) -> int:
    return to_epoch_ms(datetime.fromisoformat(text))


def messages(timing: Timing, window: Window, from_ms: int = NOW) -> list[str]:
    return [finding.message for finding in check_ticks(timing, window, from_ms)]


@pytest.mark.parametrize(
    ("at", "inside"),
    [
        ("07:59:59.999", False), ("08:00", True), ("12:00", True), ("20:59:59.999", True),
        ("21:00", True), ("21:00:59.999", True), ("21:01", False), ("00:00", False),
    ],
)  # fmt: skip
def test_both_ends_are_inside_to_the_minute(at: str, inside: bool) -> None:
    assert Window("08:00", "21:00").contains(ms(f"2026-05-05T{at}+09:00"), TOKYO) is inside


@pytest.mark.parametrize(
    ("at", "inside"), [("21:59", False), ("22:00", True), ("00:00", True), ("06:00", True), ("06:01", False)]
)
def test_a_window_may_wrap_midnight(at: str, inside: bool) -> None:
    assert Window("22:00", "06:00", time_zone="Asia/Tokyo").contains(ms(f"2026-05-05T{at}+09:00")) is inside


def test_the_repeated_hour_is_inside_both_times_or_neither() -> None:
    window = Window("01:00", "01:59", time_zone="America/New_York")
    assert [window.contains(ms(f"2026-11-01T{hour:02}:30Z")) for hour in (4, 5, 6, 7)] == [False, True, True, False]


def test_its_own_zone_beats_the_schedules() -> None:
    window = Window("08:00", "09:00", time_zone="Europe/Berlin")
    assert window.contains(ms("2026-01-01T07:30Z"), TOKYO)


def test_without_any_zone_nothing_is_guessed() -> None:
    with pytest.raises(DefinitionError, match="no time zone"):
        Window("08:00", "09:00").contains(NOW)
    with pytest.raises(DefinitionError, match="no time zone"):
        check_ticks(interval_timing(60_000), Window("08:00", "09:00"), NOW)


@pytest.mark.parametrize(
    "text", ["24:00", "8", "08:60", "8:5", "-1:00", "08:00:00", "", "\u0966\u096e:\u0966\u0966", "08.00", " 08:00"]
)
def test_a_time_of_day_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match="is not a time of day"):
        Window(text, "21:00")
    with pytest.raises(DefinitionError, match="Window end"):
        Window("08:00", text)


def test_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(TimeZoneError):
        Window("08:00", "21:00", time_zone="+09:00")


@pytest.mark.parametrize(
    ("expressions", "zone", "window"),
    [
        (("*/15 8-20 * * *", "0 21 * * *"), "Asia/Tokyo", Window("08:00", "21:00")),
        (("*/15 0-11,23 * * *", "0 12 * * *"), "UTC", Window("08:00", "21:00", time_zone="Asia/Tokyo")),
        (("0 13-19 * * *",), "UTC", Window("08:00", "15:00", time_zone="America/New_York")),
        (("0 22,23,0-2 * * *",), "America/New_York", Window("22:00", "02:00")),
        (("* * * * *",), "Europe/Berlin", Window("00:00", "23:59")),
    ],
)
def test_a_schedule_inside_its_window_has_no_findings(expressions: tuple[str, ...], zone: str, window: Window) -> None:
    assert messages(cron_timing(expressions, zone), window) == []


def test_the_first_tick_outside_is_named_in_local_time() -> None:
    assert messages(cron_timing("*/15 7-20 * * *", "Asia/Tokyo"), Window("08:00", "21:00")) == [
        "It ticks at 2026-01-02 07:00:00 Asia/Tokyo (GMT+09:00), outside its window 08:00-21:00."
    ]


def test_a_tick_that_is_outside_only_in_summer_is_found_in_winter() -> None:
    window = Window("08:00", "15:00", time_zone="America/New_York")
    assert messages(cron_timing("0 20 * * *"), window) == [
        "It ticks at 2026-03-08 16:00:00 America/New_York (GMT-04:00), outside its window 08:00-15:00."
    ]


def test_every_offset_with_a_tick_outside_is_named() -> None:
    window = Window("08:00", "14:30", time_zone="America/New_York")
    assert [finding.at_ms for finding in check_ticks(cron_timing("0 20 * * *"), window, NOW)] == [
        ms("2026-01-01T20:00Z"),
        ms("2026-03-08T20:00Z"),
    ]


def test_offsets_that_are_past_do_not_count() -> None:
    """Mexico City gave up its summer time in 2022."""
    window = Window("08:00", "14:00", time_zone="America/Mexico_City")
    assert messages(cron_timing("0 20 * * *"), window) == []
    assert len(messages(cron_timing("0 20 * * *"), window, ms("2022-06-01T00:00Z"))) == 1


def test_a_stretch_of_a_few_weeks_is_not_overlooked() -> None:
    """Between the American and the European change the two clocks are an hour nearer than in the rest of the year."""
    window = Window("15:00", "15:00", time_zone="Europe/Berlin")
    assert messages(cron_timing("0 9 * * *", "America/New_York"), window) == [
        "It ticks at 2026-03-08 14:00:00 Europe/Berlin (GMT+01:00), outside its window 15:00-15:00."
    ]


def test_a_rare_date_is_found_in_the_year_it_falls_outside() -> None:
    """29 March is before the change of the clocks in some years and after it in others."""
    window = Window("12:00", "12:59", time_zone="Europe/London")
    assert messages(cron_timing("0 12 29 3 *"), window) == [
        "It ticks at 2026-03-29 13:00:00 Europe/London (GMT+01:00), outside its window 12:00-12:59."
    ]
    assert messages(cron_timing("0 12 24 3 *"), window) == []
    assert messages(cron_timing("0 12 25 3 *"), window) == [
        "It ticks at 2029-03-25 13:00:00 Europe/London (GMT+01:00), outside its window 12:00-12:59."
    ]


def test_the_union_of_expressions_is_checked_together() -> None:
    timing = cron_timing(("0 12 * * *", "0 5 1 6 *", "0 5 1 4 *"), "Asia/Tokyo")
    assert [finding.at_ms for finding in check_ticks(timing, Window("08:00", "21:00"), NOW)] == [
        ms("2026-03-31T20:00Z")
    ]


@pytest.mark.parametrize("every_ms", [7_000, 86_400_001, 172_800_000, 5 * 3_600_000])
def test_an_interval_must_divide_the_day(every_ms: int) -> None:
    found = check_ticks(interval_timing(every_ms), Window("00:00", "23:59", time_zone="UTC"), NOW)
    assert [finding.at_ms for finding in found] == [None]
    assert "doesn't divide 24 hours" in found[0].message


def test_an_interval_inside_its_window_has_no_findings() -> None:
    daily = IntervalTiming(86_400_000)
    assert messages(daily, Window("08:00", "09:00", time_zone="Europe/Berlin"), ms("2026-01-01T07:30Z")) == [
        "It ticks at 2026-03-29 09:30:00 Europe/Berlin (GMT+02:00), outside its window 08:00-09:00."
    ]
    assert messages(daily, Window("08:00", "09:30", time_zone="Europe/Berlin"), ms("2026-01-01T07:30Z")) == []
    assert messages(interval_timing(1_000), Window("00:00", "23:59", time_zone="Europe/Berlin")) == []


def test_an_interval_is_checked_to_the_second() -> None:
    every_minute = interval_timing(timedelta(minutes=1))
    window = Window("00:00", "23:58", time_zone="UTC")
    assert [one.at_ms for one in check_ticks(every_minute, window, NOW + 7_123)] == [NOW + 86_340_000 + 7_123]


def test_an_interval_counts_from_its_anchor() -> None:
    timing, window = interval_timing(86_400_000), Window("12:00", "12:00", time_zone="UTC")
    noon = ms("2025-12-01T12:00Z")
    assert check_ticks(timing, window, NOW, anchor_ms=noon) == ()
    assert len(check_ticks(timing, window, NOW)) == 1


def test_a_tick_in_the_minute_of_the_check_is_not_overlooked() -> None:
    """Until the clock changes that night, that tick is the only one."""
    at = ms("2026-03-28T12:00:30Z")
    window = Window("14:00", "14:00", time_zone="Europe/Berlin")
    found = check_ticks(interval_timing(86_400_000), window, at, anchor_ms=at - 86_400_000 + 15_000)
    assert [one.at_ms for one in found] == [at + 15_000]


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_the_check_agrees_with_looking_at_every_tick_of_two_years(zone: str) -> None:
    timing, window = cron_timing("*/20 0-23/5 * * *"), Window("03:10", "22:40", time_zone=zone)
    until = ms("2028-01-01T00:00Z")
    outside = set()
    for at in fires(timing, NOW, 0):
        if at > until:
            break
        if not window.contains(at):
            outside.add(load_zone(zone).offset_at(at // 1000))
    assert isinstance(timing, CronTiming)
    assert {load_zone(zone).offset_at((one.at_ms or 0) // 1000) for one in check_ticks(timing, window, NOW)} == outside


def test_a_schedule_without_any_tick_fails() -> None:
    assert messages(cron_timing("0 0 1 1 *"), Window("00:00", "23:59"), ms("9999-06-01T00:00Z")) == [
        "It has no tick left."
    ]


def test_a_date_comes_from_the_local_calendar() -> None:
    assert local_date(ms("2026-03-31T15:00Z"), TOKYO) == date(2026, 4, 1)
    assert local_date(ms("2026-03-31T14:59:59.999Z"), TOKYO) == date(2026, 3, 31)
    assert local_date(ms("2011-12-30T10:00Z"), load_zone("Pacific/Apia")) == date(2011, 12, 31)
    assert local_date(-1, load_zone("UTC")) == date(1969, 12, 31)
