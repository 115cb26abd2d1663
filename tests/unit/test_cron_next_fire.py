"""The public question: the next fire time of an expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kizami.core.cron import parse_cron
from kizami.core.errors import CronError, InvalidInputError, TimeZoneError
from kizami.core.next_fire import next_fire, next_fire_s
from kizami.core.zone import load_zone

NEW_YORK = "America/New_York"


def test_the_answer_is_local_and_strictly_after() -> None:
    nine = next_fire("0 9 * * *", NEW_YORK, datetime(2026, 3, 7, 14, tzinfo=UTC))
    assert nine.isoformat() == "2026-03-08T09:00:00-04:00"
    assert nine.tzinfo is not None
    assert str(nine.tzinfo) == NEW_YORK
    assert next_fire("0 9 * * *", NEW_YORK, nine) - nine == timedelta(days=1)


def test_the_start_may_be_in_any_zone_and_at_any_microsecond() -> None:
    zone = ZoneInfo("Asia/Tokyo")
    assert next_fire("* * * * *", "UTC", datetime(2026, 1, 1, 9, 0, 0, 1, tzinfo=zone)) == datetime(
        2026, 1, 1, 0, 1, tzinfo=UTC
    )
    assert next_fire("* * * * *", "UTC", datetime(2026, 1, 1, 8, 59, 59, 999_999, tzinfo=zone)) == datetime(
        2026, 1, 1, tzinfo=UTC
    )


def test_the_repeated_hour_fires_in_its_first_pass_only() -> None:
    first = next_fire("30 1 * * *", NEW_YORK, datetime(2026, 11, 1, 4, tzinfo=UTC))
    assert (first.isoformat(), first.fold) == ("2026-11-01T01:30:00-04:00", 0)
    for inside in (
        first.replace(fold=1),
        first.replace(minute=15, fold=1),
        first,
    ):
        following = next_fire("30 1 * * *", NEW_YORK, inside.replace(tzinfo=ZoneInfo(NEW_YORK)))
        assert following.isoformat() == "2026-11-02T01:30:00-05:00"


def test_several_expressions_mean_their_union() -> None:
    after = datetime(2026, 1, 1, 20, 50, tzinfo=UTC)
    assert next_fire(["*/15 8-20 * * *", "0 21 * * *"], "UTC", after).hour == 21
    assert next_fire([parse_cron("0 22 * * *"), "0 21 * * *"], "UTC", after).hour == 21


def test_parsed_and_loaded_forms_answer_alike() -> None:
    after = datetime(2026, 1, 1, tzinfo=UTC)
    expected = next_fire("30 2 * * *", NEW_YORK, after)
    assert next_fire(parse_cron("30 2 * * *"), load_zone(NEW_YORK), after) == expected
    assert next_fire_s(parse_cron("30 2 * * *"), load_zone(NEW_YORK), int(after.timestamp())) == int(
        expected.timestamp()
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("61 * * * *", "UTC", datetime(2026, 1, 1, tzinfo=UTC)), CronError),
        (([], "UTC", datetime(2026, 1, 1, tzinfo=UTC)), CronError),
        (("* * * * *", "+09:00", datetime(2026, 1, 1, tzinfo=UTC)), TimeZoneError),
        (("* * * * *", "UTC", datetime(2026, 1, 1)), InvalidInputError),  # noqa: DTZ001 - the point of the test
        (("* * * * *", "UTC", 5), InvalidInputError),
        ((None, "UTC", datetime(2026, 1, 1, tzinfo=UTC)), CronError),
        (([5], "UTC", datetime(2026, 1, 1, tzinfo=UTC)), CronError),
        (("* * * * *", ["UTC"], datetime(2026, 1, 1, tzinfo=UTC)), TimeZoneError),
        (("0 0 1 1 *", "UTC", datetime(9999, 2, 1, tzinfo=UTC)), CronError),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        next_fire(*arguments)
    assert getattr(refused.value, "remedy", None)


def test_the_calendar_ends_quietly_at_both_ends() -> None:
    assert next_fire("* * * * *", NEW_YORK, datetime(1, 1, 1, tzinfo=UTC)).year == 1
    with pytest.raises(CronError, match="no further instant"):
        next_fire("* * * * *", NEW_YORK, datetime(9999, 12, 31, 23, 59, tzinfo=UTC))
