"""How long a failed job waits before its next attempt."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypedDict

from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.times import to_ms

MAX_DELAY_MS = 10 * 365 * 24 * 3_600_000


class StoredBackoff(TypedDict):
    """A backoff as it is stored, durations in whole milliseconds."""

    kind: Literal["exponential", "fixed"]
    base_ms: int
    factor: float
    cap_ms: int
    jitter: bool


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential growth with equal jitter, or a fixed wait.

    Exponential: `base * factor ** retries`, never above `cap`; half of it is fixed and half is random, so that jobs
    that failed together don't come back together. Raises DefinitionError.
    """

    kind: Literal["exponential", "fixed"] = "exponential"
    base: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: bool = True
    base_ms: int = field(init=False, compare=False, repr=False)
    cap_ms: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in ("exponential", "fixed"):
            raise DefinitionError(f"Backoff kind {self.kind!r} is unknown.", remedy="Use 'exponential' or 'fixed'.")
        for name in ("base", "cap"):
            object.__setattr__(self, f"{name}_ms", _milliseconds(name, getattr(self, name)))
        if not (isinstance(self.factor, int | float) and math.isfinite(self.factor) and self.factor >= 0):
            raise DefinitionError(f"Backoff factor is {self.factor!r}.", remedy="Give a finite number of 0 or more.")

    @classmethod
    def fixed(cls, wait: timedelta) -> Backoff:
        """Return a backoff that always waits so long, without jitter. Raises DefinitionError."""
        return cls(kind="fixed", base=wait, factor=1.0, cap=wait, jitter=False)

    @classmethod
    def from_stored(cls, stored: StoredBackoff) -> Backoff:
        """Return what `stored` gave."""
        base, cap = timedelta(milliseconds=stored["base_ms"]), timedelta(milliseconds=stored["cap_ms"])
        return cls(stored["kind"], base, stored["factor"], cap, stored["jitter"])

    @property
    def stored(self) -> StoredBackoff:
        """Return it as it is stored."""
        return StoredBackoff(
            kind=self.kind, base_ms=self.base_ms, factor=self.factor, cap_ms=self.cap_ms, jitter=self.jitter
        )

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


def _milliseconds(name: str, length: timedelta) -> int:
    try:
        length_ms = to_ms(length, name=f"Backoff {name}", least_ms=0)
    except InvalidInputError as error:
        raise DefinitionError(error.message, remedy=error.remedy, field=name) from error
    if length_ms > MAX_DELAY_MS:
        raise DefinitionError(
            f"Backoff {name} {length} is too long.", remedy=f"Give at most {timedelta(milliseconds=MAX_DELAY_MS)}."
        )
    return length_ms
