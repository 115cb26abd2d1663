"""How patient a kind of call is: retries, the wait it accepts inside the call, and whether 5xx are repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

DEFAULT_WAIT_MS: Final = 30_000
"""What a missing or unreadable Retry-After stands for."""

_LEAST_WAIT_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """`max_retries` after the first try; a wait above `max_retry_after_ms` is not slept at all, the call ends instead.

    `retry_server_errors` is for calls whose repetition is harmless.
    """

    max_retries: int
    max_retry_after_ms: int
    retry_server_errors: bool


POSTING: Final = CallPolicy(max_retries=2, max_retry_after_ms=2_000, retry_server_errors=False)
"""A post fails fast: a long sleep would stall the items behind it, and the missing marker retries it next tick."""

SWEEP: Final = CallPolicy(max_retries=5, max_retry_after_ms=60_000, retry_server_errors=True)
"""A read that happens once a tick may wait."""

LOOK_UP: Final = CallPolicy(max_retries=2, max_retry_after_ms=2_000, retry_server_errors=True)
"""A look-up only reads, but items wait for it: what it can't learn quickly it learns at a later tick."""


def retry_after_ms(header: str | None) -> int:
    """Return the wait that a Retry-After header asks for, in milliseconds.

    Seconds, also with a fraction; missing, negative or unreadable counts as 30 s; less than 1 s counts as 1 s, since
    repeating at once is what gets an app disabled.
    """
    try:
        seconds = float(header) if header is not None else math.nan
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        return DEFAULT_WAIT_MS
    return max(_LEAST_WAIT_MS, math.ceil(seconds * 1000))


def backoff_ms(retry: int) -> int:
    """Return the wait before the n-th repetition (from 0) after a server error: 1 s, 2 s, 4 s, ... 30 s at most."""
    return min(_LEAST_WAIT_MS << min(retry, 10), DEFAULT_WAIT_MS)
