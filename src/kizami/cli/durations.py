"""Lengths of time as people type them: 30s, 5m, 1h, 1d."""

from __future__ import annotations

import re
from datetime import timedelta

from kizami.core.errors import InvalidInputError

_SPELT = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def parse_duration(text: str, option: str) -> timedelta:
    """Return the length of time. Raises InvalidInputError naming the option."""
    spelt = _SPELT.fullmatch(text.strip())
    if spelt is None or not int(spelt[1]):
        raise InvalidInputError(
            f"{option} is {text!r}, not a length of time.", remedy="Write 30s, 5m, 1h or 1d.", path=option
        )
    try:
        return timedelta(seconds=int(spelt[1]) * _SECONDS[spelt[2]])
    except OverflowError as error:
        raise InvalidInputError(f"{option} is {text!r}, which is too long.", path=option) from error
