"""The token bucket behind `Rate`, in whole numbers: no rounding ever adds or loses a start.

The level is counted in units of 1 / interval_ms tokens: a millisecond refills `tokens` units, a start takes
`interval_ms` units, a full bucket holds tokens * interval_ms. In any time t at most tokens + tokens * t / interval
starts fit, whatever the pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.core.policy import Rate


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket as it stood at the instant `at` (ms) of the clock `clock_id`, for a rate of `tokens` in `interval_ms`.

    `clock_id` names a clock that began anew when it changes (the boot id on SQLite; "" for a database's own clock).
    """

    tokens: int
    interval_ms: int
    level: int
    at: int
    clock_id: str = ""

    @property
    def whole(self) -> int:
        """Return how many starts the bucket holds."""
        return self.level // self.interval_ms

    @property
    def next_in_ms(self) -> int:
        """Return how long until there is one token (0: there is one)."""
        missing = self.interval_ms - self.level
        return 0 if missing <= 0 else -(-missing // self.tokens)

    def take(self, count: int) -> Bucket:
        """Return the bucket after `count` starts, which it must hold."""
        level = self.level - count * self.interval_ms
        if level < 0:
            raise ValueError(f"{count} tokens were taken of {self.whole}")
        return Bucket(self.tokens, self.interval_ms, level, self.at, self.clock_id)


def bucket_at(rate: Rate, stored: Bucket | None, now: int, clock_id: str = "") -> Bucket:
    """Return the bucket of a rate at `now`: full when nothing is stored, else refilled by the time that passed.

    A clock that began anew or stepped back refills nothing: less than was due, never more. After a changed rate the
    bucket holds what it held, at most its new size.
    """
    full = rate.tokens * rate.interval_ms
    if stored is None:
        return Bucket(rate.tokens, rate.interval_ms, full, now, clock_id)
    passed = max(0, now - stored.at) if stored.clock_id == clock_id else 0
    level = min(stored.tokens * stored.interval_ms, stored.level + passed * stored.tokens)
    if stored.interval_ms != rate.interval_ms:
        level = level * rate.interval_ms // stored.interval_ms
    return Bucket(rate.tokens, rate.interval_ms, min(full, level), now, clock_id)


def must_be_written(stored: Bucket | None, bucket: Bucket) -> bool:
    """Tell whether a bucket has to be stored though nothing was taken: its clock, or its rate, is another one now.

    Else the time since then would never count.
    """
    if stored is None:
        return False
    basis = (stored.clock_id, stored.tokens, stored.interval_ms)
    return basis != (bucket.clock_id, bucket.tokens, bucket.interval_ms) or stored.at > bucket.at
