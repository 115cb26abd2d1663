"""The worker's sign of life, from a thread that users' code can't block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.core.errors import StoreError
from kizami.store.protocol import Heartbeat, Vouch

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.engine.attempt import Attempt
    from kizami.engine.station import Station


class Heart:
    """Vouches for the worker's jobs that are within their own deadline, and beats their leases."""

    def __init__(self, station: Station, attempts: Callable[[], tuple[Attempt, ...]]) -> None:
        self.part = station.condition.part("heart", station.settings.heartbeat_write_ms)
        self._pulse = station.condition.part("pulse")
        self._worker_id = station.worker_id
        self._store = station.store
        self._clock = station.runtime.clock
        self._settings = station.settings
        self._attempts = attempts
        self._vouched_boot = self._clock.boot_ms()

    @property
    def period_seconds(self) -> float:
        """Return how often to beat: often enough for the shortest window, and no oftener."""
        shortest = min(self._settings.vouch_ms, self._settings.grace_ms, self._settings.lease.beat_ms)
        return max(0.05, shortest / 2000)

    def beat(self) -> None:
        """Beat once. Never raises; what could not be written is written at the next beat."""
        attempts = self._attempts()
        for attempt in attempts:
            if attempt.lease is not None:
                attempt.lease.beat_blocking()
        now = self._clock.boot_ms()
        shortest = min((each.job.grace_ms for each in attempts), default=self._settings.grace_ms)
        if now - self._vouched_boot < min(self._settings.vouch_ms, shortest) / 2:
            return
        try:
            self._store.jobs.vouch_blocking(
                self._worker_id, [self._vouch(each, now) for each in attempts if each.is_within_deadline]
            )
        except StoreError as error:
            self._pulse.ailing(f"the sign of life could not be written: {error}")
            return
        self._pulse.well()
        self._vouched_boot = now

    async def write_progress(self) -> None:
        """Write heartbeats that performers gave since the last time."""
        beaten = [each for each in self._attempts() if each.beats > each.beats_written]
        if not beaten:
            return
        now = self._clock.boot_ms()
        counts = [each.beats for each in beaten]
        await self._store.jobs.heartbeat(
            [Heartbeat(each.job.key, each.job.claim, self._alive_ms(each, now), each.progress) for each in beaten],
        )
        for each, count in zip(beaten, counts, strict=True):
            each.beats_written = count

    async def run(self) -> None:
        """Write progress for ever, at most once in `heartbeat_write_ms`."""
        while True:
            await self._clock.sleep(self._settings.heartbeat_write_ms / 1000)
            try:
                await self.write_progress()
                self.part.well()
            except StoreError as error:
                self.part.ailing(f"progress could not be written: {error}")

    def _vouch(self, attempt: Attempt, now: int) -> Vouch:
        return Vouch(attempt.job.key, attempt.job.claim, self._alive_ms(attempt, now))

    def _alive_ms(self, attempt: Attempt, now: int) -> int:
        return attempt.deadline_boot - now + attempt.job.grace_ms
