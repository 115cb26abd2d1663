from __future__ import annotations

from datetime import timedelta

import pytest

from kizami.cli.durations import parse_duration
from kizami.core.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1h", timedelta(hours=1)),
        ("1d", timedelta(days=1)),
        (" 90m ", timedelta(minutes=90)),
    ],
)
def test_lengths_of_time_are_read(text: str, length: timedelta) -> None:
    assert parse_duration(text, "--every") == length


@pytest.mark.parametrize(
    "text", ["", "5", "m", "0s", "-5m", "1.5h", "5 m", "5M", "1h30m", "\u0665m", "9999999999s", "999999999d1"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInputError, match="Write 30s, 5m, 1h or 1d") as refused:
        parse_duration(text, "--every")
    assert refused.value.facts["path"] == "--every"
