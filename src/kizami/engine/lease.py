"""A lease that a job holds: beaten from beside the event loop, asked before every visible effect."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kizami.core.errors import DefinitionError, StoreError
from kizami.store.protocol import LeaseFence

if TYPE_CHECKING:
    from kizami.runtime import Clock
    from kizami.store.protocol import LeaseStore

log = logging.getLogger("kizami.lease")


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How often a lease is beaten, and how old a beat may be before the lease counts as abandoned. Milliseconds."""

    beat_ms: int = 120_000
    stale_ms: int = 600_000

    def __post_init__(self) -> None:
        """Refuse what would abandon the lease of a healthy holder. Raises DefinitionError naming the field."""
        for name, value in (("beat_ms", self.beat_ms), ("stale_ms", self.stale_ms)):
            if type(value) is not int or value < 1:
                remedy = "Give whole milliseconds from 1 on."
                raise DefinitionError(f"LeaseSettings: {name} is {value!r}.", remedy=remedy, field=name)
        if self.stale_ms < 2 * self.beat_ms:
            raise DefinitionError(
                f"LeaseSettings: stale_ms is {self.stale_ms}, so a holder that is a little late with its beat, every"
                f" {self.beat_ms} ms, would lose its lease.",
                remedy="Give at least twice beat_ms; five times, as by default, rides out a slow database.",
                field="stale_ms",
            )


@dataclass(slots=True)
class HeldLease:
    """One run's hold on a lease. `lost` never goes back to False."""

    app: str
    fence: LeaseFence
    store: LeaseStore
    clock: Clock
    settings: LeaseSettings
    lost: bool = False
    _beaten_boot: int = field(default=-1)

    def __post_init__(self) -> None:
        self._beaten_boot = self.clock.boot_ms()

    async def still_ours(self) -> bool:
        """Tell whether this run still holds the lease: renews it when a beat is due, otherwise reads."""
        if self.lost:
            return False
        now = self.clock.boot_ms()
        if now - self._beaten_boot < self.settings.beat_ms:
            return self._answer(held=await self.store.is_held(self.app, self.fence), beaten_boot=None)
        return self._answer(held=await self.store.renew(self.app, self.fence), beaten_boot=now)

    def still_ours_blocking(self) -> bool:
        """Tell the same from a thread that isn't the event loop, by renewing: one small write a time."""
        if self.lost:
            return False
        now = self.clock.boot_ms()
        return self._answer(held=self.store.renew_blocking(self.app, self.fence), beaten_boot=now)

    def beat_blocking(self) -> None:
        """Beat when due, from a thread; a store that can't be reached is tried again at the next beat."""
        now = self.clock.boot_ms()
        if self.lost or now - self._beaten_boot < self.settings.beat_ms:
            return
        try:
            held = self.store.renew_blocking(self.app, self.fence)
        except StoreError as error:
            log.warning("lease %s could not be renewed: %s", self.fence.name, error)
            return
        self._answer(held=held, beaten_boot=now)

    def _answer(self, *, held: bool, beaten_boot: int | None) -> bool:
        if not held and not self.lost:
            self.lost = True
            log.warning(
                "lease lost: %s (run %s) was taken over; stopping before the next effect",
                self.fence.name,
                self.fence.run_id,
            )
        if held and beaten_boot is not None:
            self._beaten_boot = beaten_boot
        return held
