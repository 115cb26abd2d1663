"""What a cron expression means, and what is not one."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from kizami.core.cron import TEXT_LENGTH_MAX, parse_cron
from kizami.core.errors import CronError
from kizami.core.next_fire import next_fire
from kizami.core.times import to_datetime, to_epoch_ms
from kizami.core.timing import cron_timing, decide_misfire, fingerprint, fires

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def utc_fires(expression: str, after: str, count: int) -> list[str]:
    timing = cron_timing(expression)
    found = islice(fires(timing, to_epoch_ms(datetime.fromisoformat(after)), 0), count)
    return [to_datetime(at).strftime("%Y-%m-%dT%H:%M") for at in found]


def lines_executed(action: Callable[[], object]) -> int:
    """Return how many lines of Python an action runs, so that a bound on work doesn't depend on the machine."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def refuse(text: str) -> None:
    with pytest.raises(CronError):
        parse_cron(text)


@pytest.mark.parametrize("same", ["0", "7", "0-0", "7-7", "0,7", "00", "07", "*/7", "0-7/7"])
def test_zero_and_seven_are_sunday(same: str) -> None:
    """B001: alone, in a list and in a range."""
    assert parse_cron(f"0 9 * * {same}") == parse_cron("0 9 * * 0")
    assert utc_fires(f"0 9 * * {same}", "2026-03-05T00:00Z", 2) == ["2026-03-08T09:00", "2026-03-15T09:00"]


def test_five_to_seven_is_friday_to_sunday() -> None:
    """B001: the seven is folded after the range is read, not before."""
    expected = ["2026-03-06T09:00", "2026-03-07T09:00", "2026-03-08T09:00", "2026-03-13T09:00"]
    assert utc_fires("0 9 * * 5-7", "2026-03-05T00:00Z", 4) == expected
    assert parse_cron("0 9 * * 5-7") == parse_cron("0 9 * * 0,5,6")
    assert parse_cron("0 9 * * 0-7") == parse_cron("0 9 * * *")


def test_weekdays_count_from_sunday() -> None:
    """B002: 4 is a Thursday."""
    assert utc_fires("45 6 * * 4", "2026-03-02T00:00Z", 1) == ["2026-03-05T06:45"]
    timing = cron_timing("45 6 * * 4")
    assert all(to_datetime(at).isoweekday() == 4 for at in islice(fires(timing, 0, 0), 100))


@pytest.mark.parametrize(
    "text", ["30 6 31 9 *", "30 6 30 2 *", "30 6 31 2,4,6,9,11 *", "0 0 30,31 2 *", "* * 31 */2,4 6"]
)
def test_a_date_that_never_exists_is_refused_with_little_work(text: str) -> None:
    """B004: at definition, naming the field; the last one has weekdays, so it is a schedule."""
    if text.endswith("6"):
        parse_cron(text)
        return
    assert lines_executed(lambda: refuse(text)) < 3000
    with pytest.raises(CronError, match=r"field day of month .* never fires") as refused:
        parse_cron(text)
    assert refused.value.facts["field"] == "day of month"


def test_a_date_that_exists_in_one_of_its_months_is_a_schedule() -> None:
    """B004: the control."""
    assert utc_fires("30 6 31 11,12 *", "2026-11-01T00:00Z", 1) == ["2026-12-31T06:30"]


@pytest.mark.parametrize(
    "text",
    [
        "*/0 * * * *",
        "*/00 * * * *",
        "7-7/0 * * * *",
        "50-10/0 * * * *",
        "*/-5 * * * *",
        "0 15 * * 2,6-4/2",
        "0 21-3 * * *",
    ],
)
def test_zero_steps_and_reversed_ranges_are_refused(text: str) -> None:
    """B007: also where another entry of the list would be fine."""
    assert lines_executed(lambda: refuse(text)) < 3000


def test_a_start_with_a_step_is_refused_with_what_to_write() -> None:
    """B008: two dialects disagree about 7/20, so it is not read; the remedy is one of the two, spelt out."""
    with pytest.raises(CronError, match="gives a step to a single number") as refused:
        parse_cron("7/20 * * * *")
    assert '"7-59/20"' in str(refused.value)
    assert parse_cron("7-59/20 * * * *") == parse_cron("7,27,47 * * * *")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 9 * * *", "00 09 * * *"),
        ("0 9 * * *", "\t0  9 1-31 * 1 "),
        ("0 0 29-31 2 *", "0 0 29 2 *"),
        ("0 0 31 1-3 *", "0 0 31 1,3 *"),
        ("*/15 * * * *", "0,15,30,45 */1 * 1-12 *"),
        ("0 0 13 * 5", "0 0 13 * 5-5/3"),
    ],
)
def test_texts_of_equal_meaning_are_equal(one: str, other: str) -> None:
    """B032: writing a rule differently is not a change of it."""
    assert parse_cron(one) == parse_cron(other)
    assert hash(parse_cron(one)) == hash(parse_cron(other))
    assert fingerprint(cron_timing(one)) == fingerprint(cron_timing(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 9 * * *", "1 9 * * *"),
        ("0 9 * * 1", "0 9 * * 2"),
        ("0 0 13 * 5", "0 0 13 * *"),
        ("0 0 */2 * 1", "0 0 * * 1"),
    ],
)
def test_texts_of_different_meaning_differ(one: str, other: str) -> None:
    assert parse_cron(one) != parse_cron(other)
    assert fingerprint(cron_timing(one)) != fingerprint(cron_timing(other))


def test_two_restricted_day_fields_mean_either_and_a_star_means_both() -> None:
    assert utc_fires("0 0 13 * 5", "2026-02-01T00:00Z", 4) == [
        "2026-02-06T00:00", "2026-02-13T00:00", "2026-02-20T00:00", "2026-02-27T00:00",
    ]  # fmt: skip
    assert utc_fires("0 0 */10 * 5", "2026-02-01T00:00Z", 3) == [
        "2026-02-06T00:00",
        "2026-02-11T00:00",
        "2026-02-13T00:00",
    ]
    assert utc_fires("0 0 * * 5", "2026-02-07T00:00Z", 1) == ["2026-02-13T00:00"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("60 * * * *", r"field minute '60': 60 is not in 0 to 59\. Use values from 0 to 59\."),
        ("0 0 * JAN *", r"field month 'JAN': 'JAN' is a name, .* Write the number, 1 to 12\."),
        ("0 0 L * *", r"field day of month 'L': 'L' is an extension"),
        ("0 0 * * 1#2", r"field day of week '1#2': '1#2' is an extension"),
        ("1,,2 * * * *", r"field minute '1,,2': an entry of the list is empty"),
        ("\u0665 * * * *", "field minute '\u0665': '\u0665' has characters outside ASCII"),
        ("* 23-1 * * *", r'the range 23-1 runs backwards\. Write "23-23,0-1"'),
        ("*/61 * * * *", r"the step 61 is not in 1 to 60"),
        ("@daily", r'nickname, which isn\'t read\. Write "0 0 \* \* \*"\.'),
        ("0 0 0 * * *", r"has 6 fields instead of five\. .* no seconds, no years"),
        ("* * * * 1 -5", r"has 6 fields instead of five\. .* no blank inside a field"),
        ("0 0 1 1 *\n", r"field day of week '\*\\n'"),
    ],
)
def test_a_refusal_names_the_field_the_text_the_reason_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(CronError, match=said):
        parse_cron(text)


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["* * * * *"]])
def test_an_expression_that_is_not_text_is_refused(value: Any) -> None:
    with pytest.raises(CronError, match="not text"):
        parse_cron(value)


@pytest.mark.parametrize(
    "text",
    ["*" * 10**6, "0," * 10**6, " " * 10**6, "9" * 999, "*/" * 400, "1-" * 300 + " * * * *", "0 0 1 1 " + "9" * 900],
)
def test_a_hostile_text_is_refused_with_little_work(text: str) -> None:
    assert lines_executed(lambda: refuse(text)) < 3000


def test_the_longest_sensible_expression_is_read() -> None:
    text = " ".join(
        ",".join(map(str, range(first, last + 1))) for first, last in [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
    )
    assert len(text) < TEXT_LENGTH_MAX
    assert parse_cron(text) == parse_cron("* * * * *")


@pytest.mark.parametrize("text", ["0 0 29 2 *", "59 23 31 12 *", "0 0 31 1 *", "* * * * *"])
def test_a_search_takes_little_work_however_rare_the_fire(text: str) -> None:
    after = datetime(2096, 2, 29, 12, tzinfo=UTC)
    cron = parse_cron(text)
    next_fire(cron, "America/New_York", after)  # works out the zone's years once
    assert lines_executed(lambda: next_fire(cron, "America/New_York", after)) < 200


def test_counting_ten_years_of_minutes_takes_little_work() -> None:
    """B023: bounded by the changes of the clock in between, not by the ticks."""
    timing, start, ten_years_ms = cron_timing("* * * * *", "America/New_York"), 1_700_000_000_000, 315_600_000_000
    decide_misfire(timing, start, start + ten_years_ms, 0)
    assert lines_executed(lambda: decide_misfire(timing, start, start + ten_years_ms, 0)) < 3000


def test_leap_days_skip_the_century_year() -> None:
    assert utc_fires("0 0 29 2 *", "2096-01-01T00:00Z", 2) == ["2096-02-29T00:00", "2104-02-29T00:00"]
