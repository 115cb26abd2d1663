"""Whether the parts of a worker do their work: a process that answers while its loops fail is worse than a dead one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kizami.runtime import Clock

log = logging.getLogger("kizami.worker")
TROUBLED_MS: Final = 10_000
"""After so long without a success, a part that fails or doesn't move keeps its worker from being ready."""

SILENT_MS: Final = 60_000
"""A part whose rounds come all the time has stopped when there was none for so long, and for three of its periods."""

TOLD_AGAIN_MS: Final = (2_000, 300_000)
"""A trouble is told at once, then at these distances, each twice the one before, from the least to the greatest."""


class Part:
    """One loop of a worker, which tells after each round whether it did its work. Instants are on the boot clock."""

    def __init__(self, name: str, clock: Clock, every_ms: int | None) -> None:
        self._name = name
        self._clock = clock
        self._silent_ms = None if every_ms is None else max(SILENT_MS, 3 * every_ms)
        self._seen_boot: int | None = None
        self._since_boot: int | None = None
        self._why = ""
        self._quiet_until_boot = 0
        self._distance_ms = TOLD_AGAIN_MS[0]

    def begin(self) -> None:
        """Expect its rounds from now on."""
        self._seen_boot = self._clock.boot_ms()

    def well(self) -> None:
        """Note a round that did its work."""
        now = self._seen_boot = self._clock.boot_ms()
        if self._since_boot is not None:
            log.warning("the %s works again, after %.1f s", self._name, (now - self._since_boot) / 1000)
            self._since_boot = None

    def ailing(self, why: str, *, traceback: bool = False) -> None:
        """Note a round that failed; it is told at once, and less and less often while it goes on."""
        now = self._seen_boot = self._clock.boot_ms()
        if self._since_boot is None:
            self._since_boot, self._quiet_until_boot, self._distance_ms = now, now, TOLD_AGAIN_MS[0]
        self._why = why
        if now >= self._quiet_until_boot:
            log.log(logging.ERROR if traceback else logging.WARNING, "%s", why, exc_info=traceback)
            self._quiet_until_boot = now + self._distance_ms
            self._distance_ms = min(2 * self._distance_ms, TOLD_AGAIN_MS[1])

    @property
    def trouble(self) -> str | None:
        """Return what keeps this part from its work, for long enough to matter; None when it is well."""
        now = self._clock.boot_ms()
        if self._since_boot is not None and now - self._since_boot >= TROUBLED_MS:
            return f"The {self._name} has failed for {(now - self._since_boot) // 1000} s: {self._why}."
        if self._seen_boot is None or self._silent_ms is None or now - self._seen_boot < self._silent_ms:
            return None
        return f"The {self._name} has not moved for {(now - self._seen_boot) // 1000} s."


class Condition:
    """The parts of one worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parts: list[Part] = []

    def part(self, name: str, every_ms: int | None = None) -> Part:
        """Add a part, with the time between its rounds; None when it has some only when there is something to do."""
        part = Part(name, self._clock, every_ms)
        self._parts.append(part)
        return part

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return what keeps the worker from its work, a sentence for each part that is not well."""
        return tuple(trouble for part in self._parts if (trouble := part.trouble) is not None)
