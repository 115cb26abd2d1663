"""Slack's clock, which makes every ts, as its answers show it.

Our own wall clock may be hours off and may be stepped at any moment. What an answer shows is carried on by the boot
clock, which nothing steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from kizami.core.times import to_epoch_ms

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.runtime import Clock

_TS: Final = re.compile(r"(\d{1,11})\.(\d{3})\d{3}", re.ASCII)
"""Seconds and millionths of one."""


@dataclass(frozen=True, slots=True)
class _Reading:
    shown_at: EpochMs
    boot_ms: int
    clock: Clock


class SlackTime:
    """What is known of Slack's clock. A reading counts only with the clock that it was taken with."""

    def __init__(self) -> None:
        self._reading: _Reading | None = None

    def learn(self, date: str | None, ts: object, clock: Clock) -> None:
        """Take the time from an answer that has just come: its Date header, or else the ts that it carries."""
        shown_at = _of_date(date) or _of_ts(ts)
        if shown_at is not None:
            self._reading = _Reading(shown_at, clock.boot_ms(), clock)

    def now(self, clock: Clock) -> EpochMs | None:
        """Return what Slack's clock shows at least by now, epoch ms; None when no answer has shown it."""
        reading = self._reading
        if reading is None or reading.clock is not clock:
            return None
        return reading.shown_at + clock.boot_ms() - reading.boot_ms


def ts_of(at: EpochMs) -> str:
    """Return an instant as Slack writes it."""
    return f"{at // 1000}.{at % 1000:03}000"


def _of_date(header: str | None) -> EpochMs | None:
    try:
        moment = parsedate_to_datetime(header or "")
    except (ValueError, OverflowError):
        return None
    return None if moment.tzinfo is None else to_epoch_ms(moment, name="Date")


def _of_ts(ts: object) -> EpochMs | None:
    found = _TS.fullmatch(ts) if isinstance(ts, str) else None
    return None if found is None else int(found[1] + found[2])
