"""The token bucket keeps its promise for every pattern of starts, clocks and changed rates."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizami.core.bucket import Bucket, bucket_at, must_be_written
from kizami.core.policy import Rate

INTERVALS = st.integers(1, 5_000).map(lambda ms: timedelta(milliseconds=ms))
RATES = st.builds(Rate, st.integers(1, 50), INTERVALS)
WAITS = st.lists(st.integers(0, 4_000), min_size=1, max_size=60)


def rate(tokens: int, ms: int) -> Rate:
    return Rate(tokens, timedelta(milliseconds=ms))


def starts(one: Rate, waits: list[int]) -> list[int]:
    """Start whatever the bucket allows after each wait; return the instants of the starts."""
    stored: Bucket | None = None
    now, made = 0, []
    for wait in waits:
        now += wait
        bucket = bucket_at(one, stored, now)
        made += [now] * bucket.whole
        stored = bucket.take(bucket.whole)
    return made


@given(RATES, WAITS)
def test_no_span_has_more_starts_than_the_size_and_the_refill(one: Rate, waits: list[int]) -> None:
    """B047: at most tokens + tokens * t / interval in any t, however they are spread."""
    made = starts(one, waits)
    for first, begin in enumerate(made):
        for last in range(first, len(made)):
            most = one.tokens * one.interval_ms + one.tokens * (made[last] - begin)
            assert (last - first + 1) * one.interval_ms <= most


@given(RATES, st.integers(1, 60_000))
def test_a_greedy_taker_gets_all_that_was_refilled(one: Rate, total_ms: int) -> None:
    """Whole numbers lose nothing: after any time, what was started is exactly what fits."""
    bucket = bucket_at(one, None, 0).take(one.tokens)
    made, now = 0, 0
    while now < total_ms:
        now = min(total_ms, now + max(1, bucket.next_in_ms))
        bucket = bucket_at(one, bucket, now)
        made += bucket.whole
        bucket = bucket.take(bucket.whole)
    assert made == one.tokens * total_ms // one.interval_ms


def test_ten_a_minute_do_not_burst_twice_at_the_edge_of_a_minute() -> None:
    """B047: ten at 59.9 s leave nothing for 60.1 s."""
    bucket = bucket_at(rate(10, 60_000), None, 59_900).take(10)
    assert bucket_at(rate(10, 60_000), bucket, 60_100).whole == 0


def test_twenty_five_at_once_are_done_in_steps_not_in_windows() -> None:
    """B047: ten in 3 s: ten at once, then one every 300 ms; the last of 25 after 4.5 s."""
    made = starts(rate(10, 3_000), [0] + [300] * 15)
    assert (made[:10], made[24]) == ([0] * 10, 4_500)


def test_the_next_token_comes_when_it_is_told() -> None:
    bucket = bucket_at(rate(3, 1_000), None, 0).take(3)
    assert bucket.next_in_ms == 334
    assert bucket_at(rate(3, 1_000), bucket, 333).whole == 0
    assert bucket_at(rate(3, 1_000), bucket, 334).whole == 1


@pytest.mark.parametrize("clock_id", ["boot-1", "boot-2"])
def test_a_restart_or_a_step_back_refills_nothing(clock_id: str) -> None:
    """B047: a restart in mid-window doesn't refill the budget."""
    bucket = bucket_at(rate(5, 1_000), None, 10_000, "boot-1").take(5)
    later = bucket_at(rate(5, 1_000), bucket, 2_000, clock_id)
    assert (later.whole, later.level) == (0, 0)
    assert must_be_written(bucket, later)
    assert bucket_at(rate(5, 1_000), later, 2_200, clock_id).whole == 1


def test_a_changed_rate_keeps_what_the_bucket_holds_and_no_more_than_its_new_size() -> None:
    half = bucket_at(rate(10, 1_000), None, 0).take(5)
    assert bucket_at(rate(10, 60_000), half, 0).whole == 5
    assert bucket_at(rate(2, 60_000), half, 0).whole == 2
    assert must_be_written(half, bucket_at(rate(2, 60_000), half, 0))
    assert not must_be_written(half, bucket_at(rate(10, 1_000), half, 5))
    assert not must_be_written(None, half)


def test_more_than_the_bucket_holds_is_never_taken() -> None:
    with pytest.raises(ValueError, match="3 tokens were taken of 2"):
        bucket_at(rate(2, 1_000), None, 0).take(3)
