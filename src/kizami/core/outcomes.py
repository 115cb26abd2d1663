"""Where a job goes after an attempt, as a pure decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from kizami.core.backoff import MAX_DELAY_MS, Backoff
from kizami.core.errors import InvalidInputError
from kizami.core.options import Guarantee
from kizami.core.states import JobState
from kizami.core.times import to_ms

SNOOZES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Snooze:
    """A performer returns this to be called again later; it uses no attempt. At most 1,000 in a row."""

    delay: timedelta
    delay_ms: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what no job can wait for. Raises InvalidInputError."""
        length_ms = to_ms(self.delay, name="Snooze delay", least_ms=0)
        if length_ms > MAX_DELAY_MS:
            longest = timedelta(milliseconds=MAX_DELAY_MS)
            raise InvalidInputError(
                f"Snooze delay {self.delay} is too long.", remedy=f"Give at most {longest}.", path="delay"
            )
        object.__setattr__(self, "delay_ms", length_ms)


@dataclass(frozen=True, slots=True)
class Cancel:
    """A performer returns this to end its job as CANCELLED."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """Where a failed attempt leads, and after which wait (ms)."""

    state: JobState
    delay_ms: int = 0


def after_failure(attempt: int, attempts_allowed: int, retries: int, backoff: Backoff, fraction: float) -> AfterFailure:
    """Decide about a reported failure: again after the backoff, or FAILED when the attempts are used up."""
    if attempt >= attempts_allowed:
        return AfterFailure(JobState.FAILED)
    return AfterFailure(JobState.SCHEDULED, backoff.delay_ms(retries, fraction))


def after_unreported_end(guarantee: Guarantee, *, started: bool) -> JobState:
    """Decide about a job whose attempt was broken off without a report: never twice if it promised at most once."""
    if guarantee is Guarantee.AT_MOST_ONCE and started:
        return JobState.STALLED
    return JobState.SCHEDULED
