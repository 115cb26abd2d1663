"""Sandbox time: the machine's time, sped up."""

from __future__ import annotations

import math

from kizami.runtime import Clock

_MS_PER_SECOND = 1_000


class SandboxTime:
    """Runs `scale` sandbox seconds in every second of its clock, starting at 0.

    Rate windows, holds and late acceptance live in it. A message's ts does not: callers compare it with their own
    clock, so it comes from the wall.
    """

    def __init__(self, clock: Clock, scale: float = 1.0) -> None:
        self._clock = clock
        self._scale = scale
        self._start = clock.boot_ms()

    def wall_ms(self) -> int:
        """Return the wall clock in epoch milliseconds, not sped up."""
        return self._clock.now_ms()

    def elapsed_ms(self) -> int:
        """Return the sandbox milliseconds since the start."""
        return int((self._clock.boot_ms() - self._start) * self._scale)

    async def hold(self, seconds: float) -> None:
        """Wait for so many sandbox seconds."""
        await self._clock.sleep(seconds / self._scale)

    def whole_real_seconds(self, sandbox_ms: float) -> int:
        """Return what to say in Retry-After, at least 1: the caller's clock is not sped up."""
        return max(1, math.ceil(sandbox_ms / _MS_PER_SECOND / self._scale))
