"""Looks for dead and silent workers and takes over what they held."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kizami.core.errors import StoreError
from kizami.core.states import JobState
from kizami.engine.housekeeper import Housekeeper

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kizami.engine.station import Station
    from kizami.store.protocol import Reaped

log = logging.getLogger("kizami.reaper")
GAP_PERIODS: Final = 5


class Reaper:
    """Buries workers whose process has ended, at once; reaps silent jobs only after watching long enough itself.

    A reaper that was stopped, could not reach the store, or saw its clock jump can't tell a silent worker from its
    own absence, so it begins its watch anew.
    """

    def __init__(self, station: Station) -> None:
        self.part = station.condition.part("reaper", station.settings.reap_ms)
        self._app = station.app
        self._worker_id = station.worker_id
        self._store = station.store
        self._runtime = station.runtime
        self._settings = station.settings
        self._watching_since = self._runtime.clock.boot_ms()
        self._looked_at = self._watching_since
        self._housekeeper = Housekeeper(station)

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self._runtime.clock.sleep(self._settings.reap_ms / 1000)
            try:
                await self.look()
                self.part.well()
            except StoreError as error:
                self.part.ailing(f"workers can't be looked at now: {error}")
                self._watching_since = self._runtime.clock.boot_ms()

    async def look(self) -> None:
        """Look once."""
        now = self._runtime.clock.boot_ms()
        if now - self._looked_at > GAP_PERIODS * self._settings.reap_ms:
            self._watching_since = now
        self._looked_at = now
        for worker in await self._store.workers.list():
            if worker.worker_id != self._worker_id and self._runtime.is_gone(worker.process):
                taken = await self._store.workers.bury(worker.worker_id)
                log.warning("worker %s is gone (process %d has ended)", worker.worker_id, worker.process.pid)
                _tell(taken)
        trusted_ms = now - self._watching_since
        _tell(await self._store.jobs.reap(self._app, trusted_ms))
        await self._housekeeper.look(now, trusted_ms)


def _tell(taken: Iterable[Reaped]) -> None:
    for reaped in taken:
        level = logging.ERROR if reaped.state in (JobState.STALLED, JobState.FAILED) else logging.WARNING
        log.log(level, "%s is %s now: %s", reaped.job_id, reaped.state, reaped.reason)
