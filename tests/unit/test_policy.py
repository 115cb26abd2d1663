"""Policies are checked where they are written, and survive being stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kizami.core.errors import DefinitionError
from kizami.core.policy import (
    Policy,
    Rate,
    Retention,
    decode_changes,
    effective_policy,
    encode_changes,
    encode_policy,
)

MINUTE = timedelta(minutes=1)
WRONG: dict[str, Callable[[], Any]] = {
    "concurrency": lambda: Policy(concurrency=0),
    "per_key_concurrency": lambda: Policy(per_key_concurrency=True),
    "rate": lambda: Policy(rate=(3, MINUTE)),  # type: ignore[arg-type]  # the mistake under test
    "tokens": lambda: Rate(10**30, MINUTE),
    "interval": lambda: Rate(1, timedelta(days=400)),
    "aging_interval": lambda: Policy(aging_interval=timedelta(days=31)),
    "reaper_grace": lambda: Policy(reaper_grace=5),  # type: ignore[arg-type]  # the mistake under test
    "completed": lambda: Retention(completed=timedelta(microseconds=1)),
    "speed": lambda: Policy().changed({"speed": 1}),  # type: ignore[typeddict-unknown-key]  # the mistake under test
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_field_is_named(field: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        WRONG[field]()
    assert refused.value.facts["field"] == field
    assert refused.value.remedy


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(7, Rate(3, MINUTE), 2, None, timedelta(0)),
        Policy(aging_interval=timedelta(milliseconds=1), reaper_grace=timedelta(days=1)),
    ],
)
def test_a_stored_policy_is_the_same_policy(policy: Policy) -> None:
    assert effective_policy(encode_policy(policy), None) == policy


def test_an_override_changes_what_it_names() -> None:
    declared = Policy(concurrency=5, rate=Rate(3, MINUTE))
    override = encode_changes({"rate": None, "per_key_concurrency": 4})
    assert effective_policy(encode_policy(declared), override) == Policy(concurrency=5, per_key_concurrency=4)


def test_a_field_of_a_newer_release_is_left_out_and_not_read_as_no_limit() -> None:
    """B068: old code keeps the limits that it knows."""
    assert decode_changes('{"burst":9,"concurrency":2}') == {"concurrency": 2}


def test_with_aging_a_minute_is_worth_a_point_and_without_priority_is_strict() -> None:
    """B050: the order of two jobs never changes with time, so it is two numbers."""
    assert Policy().place(0, 60_000) == Policy().place(1, 120_000)
    strict = Policy(aging_interval=None)
    assert strict.place(1, 10**12) < strict.place(0, 0) < strict.place(0, 1)


@pytest.mark.parametrize("priority", [-(2**31), 2**31 - 1])
def test_the_longest_aging_and_the_greatest_priority_stay_inside_64_bits(priority: int) -> None:
    """B058: no order key overflows a database's integer."""
    _, order_key = Policy(aging_interval=timedelta(days=30)).place(priority, 253_402_300_800_000)
    assert -(2**63) < order_key < 2**63
