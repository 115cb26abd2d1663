"""Lengths of time as people type them: 30s, 5m, 1h, 1d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from kizami.core.errors import InvalidInputError

_SHOWN_MAX: Final = 100
_SPELT: Final = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_DAYS_MAX: Final = 36_500
_SECONDS_MAX: Final = _DAYS_MAX * 86_400
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def parse_duration(text: str, option: str) -> timedelta:
    """Return the length of time. Raises InvalidInputError naming the option."""
    spelt = _SPELT.fullmatch(text.strip())
    if spelt is None or not int(spelt[1]):
        raise InvalidInputError(
            f"{option} is {text[:_SHOWN_MAX]!r}, not a length of time.", remedy="Write 30s, 5m, 1h or 1d.", path=option
        )
    length_s = int(spelt[1]) * _SECONDS[spelt[2]]
    if length_s > _SECONDS_MAX:
        raise InvalidInputError(
            f"{option} is {text!r}, which is too long.", remedy=f"Give at most {_DAYS_MAX}d.", path=option
        )
    return timedelta(seconds=length_s)
