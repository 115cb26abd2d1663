"""Zones: which names are taken, and that local time agrees with the database everywhere."""

from __future__ import annotations

import pickle
import struct
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from kizami.core.errors import TimeZoneError
from kizami.core.zone import BEGINNING_S, END_S, Transition, load_zone, tzdata_version, zone_bytes, zone_names
from kizami.core.zone_file import Change, YearlyRule, read_zone_file

if TYPE_CHECKING:
    from kizami.core.zone import Span, TimeZone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def offset_by_zoneinfo(zone: TimeZone, at_s: int) -> int:
    offset = (EPOCH + timedelta(seconds=at_s)).astimezone(zone.tzinfo).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


@cache
def different_zones() -> list[TimeZone]:
    """Return the zones without those that are another's data under a second name."""
    return list({zone_bytes(name): load_zone(name) for name in sorted(zone_names())}.values())


def spans(zone: TimeZone, from_s: int, until_s: int) -> list[Span]:
    found = [zone.span_at(from_s)]
    while found[-1].end < until_s:
        found.append(zone.span_at(found[-1].end))
    return found


@pytest.mark.parametrize(
    "name",
    [
        "Europe/Berlinn", '"Europe/Berlin"', "'UTC'", "europe/berlin", "EUROPE/BERLIN", "utc", "", " ", "../etc/passwd",
        "/etc/localtime", "localtime", "posixrules", "Factory", "right/UTC", "posix/UTC", "Europe", "Europe/", "UTC ",
        "America/Argentina", "+09:00", "UTC+9", "GMT+9", "09:00", "JST", "PST", "zone.tab", "tzdata.zi", "Z",
        "Europe/__init__.py", "Europe\\Berlin", "Europe/Berlin\0", "\uff35\uff34\uff23",
    ],
)  # fmt: skip
def test_a_name_that_is_not_an_iana_zone_is_refused(name: str) -> None:
    """B020: in words, never by an error of the file system."""
    with pytest.raises(TimeZoneError, match="Time zone") as refused:
        load_zone(name)
    assert refused.value.remedy


@pytest.mark.parametrize("value", [None, 9, UTC, b"UTC", ("UTC",)])
def test_a_zone_that_is_not_text_is_refused(value: Any) -> None:
    """B020."""
    with pytest.raises(TimeZoneError):
        load_zone(value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("europe/berlin", "Europe/Berlin"), ('"Asia/Tokyo"', "Asia/Tokyo"), ("america/new york", "America/New_York")],
)
def test_a_refusal_suggests_the_name_that_was_meant(name: str, meant: str) -> None:
    """B020."""
    with pytest.raises(TimeZoneError, match=f'Write "{meant}"'):
        load_zone(name)


def test_a_fixed_offset_is_refused_with_the_reason() -> None:
    """B020."""
    with pytest.raises(TimeZoneError, match="fixed offsets are refused"):
        load_zone("+09:00")


def test_the_edition_of_the_database_is_known() -> None:
    """B019: it can be recorded beside a plan."""
    assert tzdata_version()[:2] == "20"


def test_offsets_agree_with_zoneinfo_at_every_transition_of_every_zone() -> None:
    """B017: in the listed years and under the rule that follows them, without any yearly pattern of ours."""
    for zone in different_zones():
        for one in spans(zone, BEGINNING_S, seconds("2045-01-01T00:00Z")):
            for at_s in {max(one.start, one.end - 10**9), (one.start + one.end) // 2, one.end - 1}:
                assert one.offset == offset_by_zoneinfo(zone, at_s), (zone, at_s)
            assert one.start == BEGINNING_S or one.offset != offset_by_zoneinfo(zone, one.start - 1), (zone, one)


@pytest.mark.parametrize(
    "name", ["America/New_York", "Europe/Dublin", "Africa/Cairo", "Asia/Gaza", "America/Nuuk", "Pacific/Chatham"]
)
def test_offsets_agree_with_zoneinfo_in_every_month_until_the_end_of_time(name: str) -> None:
    zone = load_zone(name)
    for at_s in range(seconds("2045-01-01T00:00Z"), END_S, 86_400 * 3637):
        assert zone.offset_at(at_s) == offset_by_zoneinfo(zone, at_s)


def test_first_passes_hold_every_local_time_once() -> None:
    """What a span shows outside the first passes was shown before; nothing that exists is lost, nothing comes twice."""
    until = seconds("2045-01-01T00:00Z")
    for zone in different_zones():
        local = [(one.start + one.offset, one.end + one.offset) for one in zone.first_passes(BEGINNING_S, until)]
        assert all(end <= start for (_, end), (start, _) in pairwise(local)), zone
        for one in spans(zone, BEGINNING_S, until):
            start, end = one.start + one.offset, one.end + one.offset
            near = local[max(0, bisect_right(local, (start,)) - 3) :]
            covered = sum(
                min(end, last) - max(start, first) for first, last in near[:9] if first < end and last > start
            )
            assert covered == end - start, (zone, one)


def test_transitions_are_listed_with_both_offsets() -> None:
    zone = load_zone("America/New_York")
    assert list(zone.transitions(seconds("2026-03-08T06:59:59Z"), seconds("2026-11-01T06:00Z"))) == [
        Transition(seconds("2026-03-08T07:00Z"), -18_000, -14_400),
        Transition(seconds("2026-11-01T06:00Z"), -14_400, -18_000),
    ]
    assert list(zone.transitions(seconds("2026-03-08T07:00Z"), seconds("2026-11-01T05:59Z"))) == []
    assert list(load_zone("Asia/Tokyo").transitions(seconds("2000-01-01T00:00Z"), END_S + 1)) == []


def test_a_gap_of_a_day_and_one_of_half_an_hour_have_their_true_size() -> None:
    """B014, B016."""
    apia = next(load_zone("Pacific/Apia").transitions(seconds("2011-12-01T00:00Z"), seconds("2012-01-01T00:00Z")))
    assert apia == (seconds("2011-12-30T10:00Z"), -36_000, 50_400)
    howe = next(
        load_zone("Australia/Lord_Howe").transitions(seconds("2026-09-01T00:00Z"), seconds("2026-12-01T00:00Z"))
    )
    assert howe.after - howe.before == 1800


def test_zones_are_equal_by_name_and_survive_pickling() -> None:
    zone = load_zone("Europe/Berlin")
    copied = pickle.loads(pickle.dumps(zone))  # noqa: S301 - our own bytes
    assert copied == zone
    assert hash(copied) == hash(zone)
    assert copied != load_zone("Europe/Vienna")
    assert copied.offset_at(seconds("2500-07-01T00:00Z")) == 7200
    at = datetime(2026, 7, 1, tzinfo=zone.tzinfo)
    assert pickle.loads(pickle.dumps(at)).tzinfo is zone.tzinfo  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("start_day", "end_day", "year", "changes"),
    [
        ("J60", "J365", 2024, ("2024-03-01T01:00Z", "2024-12-31T00:00Z")),
        ("59", "364", 2024, ("2024-02-29T01:00Z", "2024-12-30T00:00Z")),
        ("M2.5.4", "M12.5.0", 2024, ("2024-02-29T01:00Z", "2024-12-29T00:00Z")),
    ],
)
def test_day_rules_of_all_three_kinds(start_day: str, end_day: str, year: int, changes: tuple[str, str]) -> None:
    """Day of the year without or with leap day, and the last weekday of a month; at 02:00 by the clock that ends."""
    rule = YearlyRule(3600, 7200, start_day, 7200, end_day, 7200)
    assert rule.changes(year) == (Change(seconds(changes[0]), 7200), Change(seconds(changes[1]), 3600))


def zone_file(version: bytes, footer: bytes) -> bytes:
    block = struct.pack(">4sc15x6l", b"TZif", version, 0, 0, 0, 0, 1, 1) + struct.pack(">lBB", 0, 0, 0) + b"\0"
    return block + block + b"\n" + footer + b"\n"


def test_a_zone_file_is_read_with_its_rule() -> None:
    read = read_zone_file(zone_file(b"2", b"<-02>2<-01>,M3.5.0/-1,M10.5.0/0:30:15"))
    assert read.changes == ()
    assert read.rule == YearlyRule(-7200, -3600, "M3.5.0", -3600, "M10.5.0", 1815)
    assert read_zone_file(zone_file(b"3", b"UTC0")).rule is None


@pytest.mark.parametrize(
    "data",
    [b"", b"TZif2", zone_file(b"\0", b"UTC0"), zone_file(b"2", b"nonsense!"), zone_file(b"2", b"EST5EDT"), b"x" * 200],
)
def test_what_is_not_a_zone_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="zone file"):
        read_zone_file(data)
