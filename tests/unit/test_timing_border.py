"""Where times enter and leave: aware datetimes, whole milliseconds, texts for people, stored timings."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from kizami.core.errors import CronError, DefinitionError, InvalidInputError, KizamiError, TimeZoneError
from kizami.core.times import format_local, format_offset, to_datetime, to_epoch_ms, to_epoch_s, to_ms
from kizami.core.timing import (
    CronTiming,
    IntervalTiming,
    Timing,
    cron_timing,
    fingerprint,
    from_json,
    interval_timing,
    to_json,
)
from kizami.core.zone import load_zone


def test_a_datetime_becomes_the_millisecond_it_lies_in() -> None:
    assert to_epoch_ms(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert to_epoch_ms(datetime(2026, 3, 1, 9, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=9)))) == 1_772_323_200_123
    assert to_epoch_ms(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert to_epoch_s(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert to_epoch_ms(datetime(9999, 12, 29, 23, 59, 59, 999_999, tzinfo=UTC)) == 253_402_127_999_999


@pytest.mark.parametrize("convert", [to_epoch_ms, to_epoch_s])
def test_a_naive_datetime_is_refused_by_name(convert: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"run_at 2026-01-01T09:00:00 has no time zone.*tzinfo=UTC") as refused:
        convert(datetime(2026, 1, 1, 9), name="run_at")  # noqa: DTZ001 - the point of the test
    assert refused.value.facts == {"path": "run_at"}


@pytest.mark.parametrize("value", [None, 5, "2026-01-01", date(2026, 1, 1)])
def test_what_is_no_datetime_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="not a datetime"):
        to_epoch_ms(value)


def test_an_instant_becomes_a_datetime_again() -> None:
    at = datetime(2026, 11, 1, 1, 30, 0, 7_000, tzinfo=load_zone("America/New_York").tzinfo, fold=1)
    back = to_datetime(to_epoch_ms(at), load_zone("America/New_York"))
    assert (back.replace(tzinfo=None), back.fold, back.utcoffset()) == (at.replace(tzinfo=None), 1, timedelta(hours=-5))
    assert to_datetime(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("at_ms", [10**15, -(10**15)])
def test_an_instant_that_no_calendar_has_is_refused(at_ms: int) -> None:
    with pytest.raises(InvalidInputError, match="years 1 to 9999"):
        to_datetime(at_ms)


def test_a_length_becomes_whole_milliseconds() -> None:
    assert to_ms(timedelta(minutes=5)) == 300_000
    assert to_ms(timedelta(milliseconds=-1)) == -1
    with pytest.raises(InvalidInputError, match=r"delay .* whole number of milliseconds"):
        to_ms(timedelta(microseconds=1500), name="delay")
    with pytest.raises(InvalidInputError, match="delay -1 day, 23:59:59 is less than 0 ms"):
        to_ms(timedelta(seconds=-1), name="delay", least_ms=0)
    with pytest.raises(InvalidInputError, match="not a timedelta"):
        to_ms(5)  # type: ignore[arg-type]  # a wrong type on purpose


@pytest.mark.parametrize(
    ("at", "zone", "shown"),
    [
        ("2026-03-08T07:00Z", "America/New_York", "2026-03-08 03:00:00 America/New_York (GMT-04:00)"),
        ("2026-11-01T06:30Z", "America/New_York", "2026-11-01 01:30:00 America/New_York (GMT-05:00)"),
        ("2026-01-01T00:00:00.250Z", "Asia/Kathmandu", "2026-01-01 05:45:00.250 Asia/Kathmandu (GMT+05:45)"),
        ("2026-01-01T00:00Z", "UTC", "2026-01-01 00:00:00 UTC (GMT+00:00)"),
        ("1883-01-01T00:00Z", "America/New_York", "1882-12-31 19:03:58 America/New_York (GMT-04:56:02)"),
        ("0900-01-01T00:00Z", "UTC", "0900-01-01 00:00:00 UTC (GMT+00:00)"),
    ],
)
def test_a_time_shown_carries_its_zone_and_the_offset_in_force(at: str, zone: str, shown: str) -> None:
    assert format_local(to_epoch_ms(datetime.fromisoformat(at)), load_zone(zone)) == shown


def test_offsets_read_the_same_on_both_sides_of_greenwich() -> None:
    assert [format_offset(offset) for offset in (5400, -5400, 0, 1, -1)] == [
        "GMT+01:30", "GMT-01:30", "GMT+00:00", "GMT+00:00:01", "GMT-00:00:01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "timing",
    [
        interval_timing(1000),
        cron_timing("0 9 * * 1-5", "Asia/Tokyo"),
        cron_timing(["*/15 8-20 * * *", "0 21 * * *"], "UTC"),
    ],
)
def test_a_stored_timing_comes_back_as_it_was(timing: Timing) -> None:
    back = from_json(json.loads(json.dumps(to_json(timing))))
    assert back == timing
    assert to_json(back) == to_json(timing)
    assert fingerprint(back) == fingerprint(timing)


def test_a_stored_timing_keeps_the_texts_as_written() -> None:
    assert to_json(cron_timing("00 09 * * 7", "Asia/Tokyo")) == {
        "kind": "cron", "expressions": ["00 09 * * 7"], "time_zone": "Asia/Tokyo",
    }  # fmt: skip


@pytest.mark.parametrize(
    "stored",
    [
        {}, {"kind": "cron"}, {"kind": "interval"}, {"kind": "interval", "every_ms": 1},
        {"kind": "interval", "every_ms": True},
        {"kind": "cron", "expressions": [], "time_zone": "UTC"},
        {"kind": "cron", "expressions": [5], "time_zone": "UTC"},
        {"kind": "cron", "expressions": ["* * * * *"], "time_zone": "Mars/Phobos"},
        {"kind": "cron", "expressions": "* * * * *", "time_zone": "UTC"},
    ],
)  # fmt: skip
def test_a_stored_timing_that_cannot_be_used_is_refused_in_words(stored: dict[str, object]) -> None:
    """B020: such as one whose zone is no longer in the database."""
    with pytest.raises(DefinitionError):
        from_json(stored)


def test_a_fingerprint_is_the_same_for_the_same_plan_however_it_is_split() -> None:
    """B032: order, repetition and division of the expressions are not its meaning."""
    whole = fingerprint(cron_timing("0 0 * * *"))
    assert fingerprint(cron_timing(("0 0 * * 1-5", "0 0 * * 0,6"))) == whole
    assert fingerprint(cron_timing(("0 0 1-15 * *", "0 0 * * *", "0 0 * * *"))) == whole
    assert fingerprint(cron_timing(("0 0 * * 6,7", "0 0 * * 1-5"))) == whole
    assert fingerprint(cron_timing(("0 0,12 * * *",))) == fingerprint(cron_timing(("0 12 * * *", "0 0 * * *")))
    assert fingerprint(cron_timing(("0 0 * * *", "0 12 * * 1"))) != whole


def test_a_fingerprint_tells_zones_and_kinds_apart() -> None:
    prints = {
        fingerprint(timing)
        for timing in (
            cron_timing("0 0 * * *"), cron_timing("0 0 * * *", "Asia/Tokyo"), cron_timing("0 0 * * *", "Europe/London"),
            interval_timing(1000), interval_timing(1001), interval_timing(86_400_000),
        )
    }  # fmt: skip
    assert len(prints) == 6


def test_a_fingerprint_does_not_change_between_releases() -> None:
    """It is stored beside a plan, so another value would plan every schedule anew."""
    assert fingerprint(cron_timing("0 9 * * 1-5", "Asia/Tokyo")) == "030fe946419195b8061367f29c7fdadf"
    assert fingerprint(interval_timing(300_000)) == "ae17269d408f78cc64118da650d64b63"


@pytest.mark.parametrize(
    "every", [999, 0, -1000, 1000.0, True, "1000", None, timedelta(milliseconds=999), timedelta(microseconds=1_000_500)]
)
def test_an_interval_is_whole_milliseconds_from_a_second_on(every: Any) -> None:
    with pytest.raises(DefinitionError, match="every"):
        interval_timing(every)


def test_an_interval_may_be_given_either_way() -> None:
    assert interval_timing(timedelta(minutes=5)) == IntervalTiming(300_000) == interval_timing(300_000)


def test_one_expression_or_several_are_taken_and_none_is_refused() -> None:
    assert cron_timing("0 9 * * *").expressions == ("0 9 * * *",)
    assert cron_timing(iter(["0 9 * * *", "0 10 * * *"])).expressions == ("0 9 * * *", "0 10 * * *")
    with pytest.raises(CronError, match="cron has 0 expressions"):
        cron_timing([])
    with pytest.raises(CronError, match="cron has 51 expressions"):
        cron_timing(["0 9 * * *"] * 51)
    with pytest.raises(TimeZoneError):
        cron_timing("0 9 * * *", "+09:00")


def test_refusals_are_definition_errors_with_stable_codes() -> None:
    codes: list[str] = []
    for wrong in (("x", "UTC"), ("* * * * *", "x")):
        with pytest.raises(DefinitionError) as refused:
            cron_timing(*wrong)
        assert isinstance(refused.value, KizamiError)
        codes.append(refused.value.code)
    assert codes == ["invalid_cron", "invalid_time_zone"]


def test_timings_are_values() -> None:
    timing = cron_timing("0 9 * * *", "Asia/Tokyo")
    assert timing == cron_timing("00 9 * * *", "Asia/Tokyo")
    assert len({timing, cron_timing("0 9 * * *", "Asia/Tokyo"), interval_timing(1000)}) == 2
    assert isinstance(timing, CronTiming)
    with pytest.raises(AttributeError):
        timing.zone = load_zone("UTC")  # type: ignore[misc]  # a wrong write on purpose
