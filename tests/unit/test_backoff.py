from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizami.core.backoff import MAX_DELAY_MS, Backoff
from kizami.core.errors import DefinitionError

MS = timedelta(milliseconds=1)
CAP_MS = 30 * 60_000
CAP = CAP_MS * MS
EXTREMES = [0, 1, 44, 45, 1023, 1024, 100_000, 10**9]


@pytest.mark.parametrize("retries", EXTREMES)
@pytest.mark.parametrize("factor", [0, 0.5, 1, 1.0000001, 2, 1e308, 5e-324])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.9999999999999999])
@pytest.mark.parametrize("jitter", [True, False])
def test_a_wait_never_overflows_and_never_exceeds_the_cap(
    retries: int, factor: float, fraction: float, *, jitter: bool
) -> None:
    """B041: floats end at exponent 1024; the wait is a whole number of milliseconds all the same."""
    wait = Backoff(base=timedelta(seconds=3), factor=factor, cap=CAP, jitter=jitter).delay_ms(retries, fraction)
    assert type(wait) is int
    assert 0 <= wait <= CAP_MS


@pytest.mark.parametrize("retries", EXTREMES[2:])
def test_far_along_a_growing_backoff_waits_the_cap(retries: int) -> None:
    """B041."""
    assert Backoff(base=timedelta(seconds=3), cap=CAP, jitter=False).delay_ms(retries, 0.0) == CAP_MS


def test_the_first_retry_waits_the_base_and_each_next_one_twice_as_long() -> None:
    backoff = Backoff(jitter=False)
    assert [backoff.delay_ms(retries, 0.0) for retries in range(13)] == [
        min(1_000 * 2**retries, 3_600_000) for retries in range(13)
    ]


@given(st.integers(0, 40), st.floats(0, 1, exclude_max=True))
def test_half_of_a_wait_is_fixed_and_half_is_random(retries: int, fraction: float) -> None:
    whole = Backoff(jitter=False).delay_ms(retries, 0.0)
    jittered = Backoff().delay_ms(retries, fraction)
    assert whole // 2 <= jittered <= whole
    assert abs(jittered - whole * (1 + fraction) / 2) <= 1


def test_a_fixed_backoff_always_waits_the_same() -> None:
    assert {Backoff.fixed(250 * MS).delay_ms(retries, 0.7) for retries in EXTREMES} == {250}


def test_a_base_above_the_cap_waits_the_cap() -> None:
    assert Backoff(base=10 * MS, cap=3 * MS, jitter=False).delay_ms(0, 0.0) == 3
    assert Backoff(base=10 * MS, cap=0 * MS).delay_ms(5, 0.9) == 0
    assert Backoff(base=0 * MS).delay_ms(5, 0.9) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "linear"}, {"base": -MS}, {"base": 1.5}, {"base": True}, {"cap": (MAX_DELAY_MS + 1) * MS},
        {"base": MS / 2}, {"cap": 1_000},
        {"factor": float("nan")}, {"factor": float("inf")}, {"factor": -1}, {"factor": "2"},
    ],
)  # fmt: skip
def test_a_backoff_that_makes_no_sense_is_refused_where_it_is_defined(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError) as caught:
        Backoff(**wrong)
    assert next(iter(wrong)).partition("_")[0] in str(caught.value)
    assert caught.value.remedy


def test_a_backoff_is_stored_in_milliseconds_and_read_back() -> None:
    backoff = Backoff(base=250 * MS, factor=1.5, cap=CAP, jitter=False)
    assert backoff.stored == {"kind": "exponential", "base_ms": 250, "factor": 1.5, "cap_ms": CAP_MS, "jitter": False}
    assert Backoff.from_stored(backoff.stored) == backoff
