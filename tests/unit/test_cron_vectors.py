"""The recorded vectors: fire times enumerated minute by minute, and definitions that must be refused."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kizami.core.errors import CronError, DefinitionError, TimeZoneError
from kizami.core.times import to_epoch_ms
from kizami.core.timing import (
    count_between,
    cron_timing,
    decide_misfire,
    first_fire,
    interval_timing,
    is_planned,
    latest_at_or_before,
    next_after,
)

VECTORS = Path(__file__).parent.parent / "vectors"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines()]


def ms(text: str) -> int:
    return to_epoch_ms(datetime.fromisoformat(text))


CRON = read("cron_vectors.jsonl")


@pytest.mark.parametrize("vector", [one for one in CRON if "next" in one], ids=lambda one: one["id"])
def test_every_fire_time_of_a_vector_follows_from_the_one_before(vector: dict[str, Any]) -> None:
    """Each planned instant is the next, the only one in between, and the latest at its own moment."""
    timing, after = cron_timing(vector["expr"], vector["tz"]), ms(vector["after"])
    for expected in map(ms, vector["next"]):
        assert next_after(timing, after, 0) == expected
        assert is_planned(timing, expected, 0)
        assert latest_at_or_before(timing, expected, 0) == expected
        assert count_between(timing, after, expected, 0) == 1
        after = expected


@pytest.mark.parametrize("vector", [one for one in CRON if "error" in one], ids=lambda one: one["id"])
def test_a_wrong_definition_is_refused_with_reason_and_remedy(vector: dict[str, Any]) -> None:
    with pytest.raises((CronError, TimeZoneError)) as refused:
        cron_timing(vector["expr"], vector["tz"])
    assert refused.value.message.endswith(".")
    assert refused.value.remedy


def test_intervals_keep_their_phase_and_start_one_interval_late() -> None:
    for vector in read("interval_vectors.jsonl"):
        if "error" in vector:
            with pytest.raises(DefinitionError):
                interval_timing(vector["every_ms"])
            continue
        timing = interval_timing(vector["every_ms"])
        if "registered_ms" in vector:
            assert first_fire(timing, vector["registered_ms"]) == vector["first_ms"]
        else:
            assert next_after(timing, vector["now_ms"], vector["previous_ms"]) == vector["next_ms"]


def test_after_downtime_the_oldest_fires_once_and_the_plan_goes_on_after_now() -> None:
    for vector in read("misfire_vectors.jsonl"):
        if "every_ms" in vector:
            planned, now = vector["planned_ms"], vector["now_ms"]
            decided = decide_misfire(interval_timing(vector["every_ms"]), planned, now, planned)
            assert (decided.fire, decided.next) == (vector["fire_ms"], vector["next_ms"])
        else:
            planned, now = ms(vector["planned"]), ms(vector["now"])
            decided = decide_misfire(cron_timing(vector["expr"], vector["tz"]), planned, now, 0)
            assert decided.fire == (ms(vector["fire"]) if vector["fire"] else None)
            assert decided.next == ms(vector["next"])
