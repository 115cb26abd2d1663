from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kizami.core.backoff import Backoff
from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.options import OF_THE_CALL, FirstDue, Guarantee, JobOptions, split_enqueue


def test_the_defaults() -> None:
    options = JobOptions()
    assert (options.priority, options.max_attempts, options.timeout_ms) == (0, 3, 60_000)
    assert (options.guarantee, options.backoff) == (Guarantee.AT_LEAST_ONCE, Backoff())


def test_what_is_left_out_stays() -> None:
    options = JobOptions(priority=3).changed("send", {"timeout": timedelta(seconds=5), "guarantee": "at-most-once"})
    assert options == JobOptions(priority=3, timeout_ms=5_000, guarantee=Guarantee.AT_MOST_ONCE)


@pytest.mark.parametrize("name", OF_THE_CALL)
def test_what_belongs_to_the_call_is_no_option_of_a_job(name: str) -> None:
    changes: Any = {name: "x"}
    with pytest.raises(DefinitionError, match=f"send: {name} is not an option") as caught:
        JobOptions().changed("send", changes)
    assert caught.value.facts == {"field": name}


@pytest.mark.parametrize(
    "changes",
    [
        {"priority": 2**31}, {"priority": -(2**31) - 1}, {"priority": 1.0}, {"priority": True}, {"priority": "1"},
        {"max_attempts": 0}, {"max_attempts": 10**30}, {"timeout": timedelta(0)}, {"timeout": 5},
        {"timeout": timedelta(microseconds=1)}, {"guarantee": "exactly-once"}, {"backoff": 5}, {"colour": "red"},
    ],
)  # fmt: skip
def test_a_wrong_option_names_owner_and_field(changes: Any) -> None:
    """B058: out of range is refused where it is given."""
    (field,) = changes
    with pytest.raises(DefinitionError, match="send") as caught:
        JobOptions().changed("send", changes)
    assert caught.value.facts == {"field": field}
    assert caught.value.remedy


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31)])
def test_a_priority_is_a_32_bit_integer(priority: int) -> None:
    assert JobOptions().changed("send", {"priority": priority}).priority == priority


def test_delay_and_run_at_are_told_apart_and_exclusive() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert split_enqueue("send", {"priority": 1}) == ({"priority": 1}, FirstDue())
    assert split_enqueue("send", {"delay": timedelta(seconds=2)}) == ({}, FirstDue(delay_ms=2_000))
    assert split_enqueue("send", {"run_at": at}) == ({}, FirstDue(run_at_ms=1_767_225_600_000))
    with pytest.raises(DefinitionError, match="delay and run_at"):
        split_enqueue("send", {"delay": timedelta(0), "run_at": at})


@pytest.mark.parametrize(
    "changes",
    [{"delay": timedelta(milliseconds=-1)}, {"delay": 5}, {"run_at": datetime(2026, 1, 1)}, {"run_at": 5}],  # noqa: DTZ001 - naive is the point
)
def test_a_wrong_due_time_is_refused(changes: Any) -> None:
    with pytest.raises(InvalidInputError, match="send"):
        split_enqueue("send", changes)


@pytest.mark.parametrize(("wrong", "near"), [("max_attempt", "max_attempts"), ("delays", "delay"), ("runat", "run_at")])
def test_an_unknown_option_is_answered_with_the_nearest_and_all(wrong: str, near: str) -> None:
    with pytest.raises(DefinitionError, match=f"Job: unknown option {wrong}") as caught:
        JobOptions().changed("Job", {wrong: 1})  # type: ignore[misc]  # the mistake
    assert f"Did you mean {near}?" in str(caught.value.remedy)
    assert "also connection, delay, run_at" in str(caught.value.remedy)
