"""How long a failed job waits before its next attempt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kizami.core.errors import DefinitionError

MAX_DELAY_MS = 10 * 365 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential growth with equal jitter, or a fixed wait.

    Durations are whole milliseconds. Exponential: `base_ms * factor ** retries`, never above `cap_ms`; half of it is
    fixed and half is random, so that jobs that failed together don't come back together.
    """

    kind: Literal["exponential", "fixed"] = "exponential"
    base_ms: int = 1_000
    factor: float = 2.0
    cap_ms: int = 3_600_000
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.kind not in ("exponential", "fixed"):
            raise DefinitionError(f"Backoff kind {self.kind!r} is unknown.", remedy="Use 'exponential' or 'fixed'.")
        for name in ("base_ms", "cap_ms"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_DELAY_MS:
                raise DefinitionError(
                    f"Backoff {name} is {value!r}.",
                    remedy=f"Give whole milliseconds from 0 to {MAX_DELAY_MS}.",
                )
        if not (isinstance(self.factor, int | float) and math.isfinite(self.factor) and self.factor >= 0):
            raise DefinitionError(f"Backoff factor is {self.factor!r}.", remedy="Give a finite number of 0 or more.")

    @classmethod
    def fixed(cls, wait_ms: int) -> Backoff:
        """Return a backoff that always waits `wait_ms` milliseconds, without jitter."""
        return cls(kind="fixed", base_ms=wait_ms, factor=1.0, cap_ms=wait_ms, jitter=False)

    def delay_ms(self, retries: int, fraction: float) -> int:
        """Return the wait before retry number `retries` (0 for the first), with `fraction` in [0, 1) as the jitter."""
        whole = self._unjittered_ms(retries)
        if not self.jitter:
            return whole
        fixed = whole // 2
        return fixed + int((whole - fixed) * fraction)

    def _unjittered_ms(self, retries: int) -> int:
        if self.kind == "fixed" or self.base_ms == 0 or self.factor == 1:
            return min(self.base_ms, self.cap_ms)
        if self.factor == 0:
            return min(self.base_ms, self.cap_ms) if retries == 0 else 0
        # Compared as logarithms: the power itself overflows long before the cap is reached by min().
        growth = retries * math.log(self.factor)
        if growth >= math.log(max(self.cap_ms, 1)) - math.log(self.base_ms):
            return self.cap_ms
        return min(self.cap_ms, int(self.base_ms * math.exp(growth) + 0.5))
