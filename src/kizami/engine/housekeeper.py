"""Removes what was kept long enough, off the hot path: one small batch a look, as long as there is something."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kizami.engine.station import Station

log = logging.getLogger("kizami.housekeeper")
PERIOD_MS: Final = 60_000
BATCH: Final = 500


class Housekeeper:
    """Goes through its duties in turn: after a batch that leaves some over, the other duties come first."""

    def __init__(self, station: Station) -> None:
        self._app = station.app
        self._keep = station.settings.keep
        self._jobs = station.store.jobs
        self._store = station.store.housekeeping
        self._after = ""
        self._done_at = station.runtime.clock.boot_ms()
        self._left: deque[Callable[[], Awaitable[bool]]] = deque()

    async def look(self, now: int, trusted_ms: int) -> None:
        """Do one batch of what is left; begin anew a minute after all was done (`now`, of the boot clock).

        `trusted_ms`: for how long others' silence has been watched. After a sleep of the machine or of the store every
        worker seems silent, until it has had a minute to show life.
        """
        if not self._left:
            if now - self._done_at < PERIOD_MS:
                return
            self._left.extend((self._sweep_jobs, self._sweep_ledger, self._sweep_deliveries, self._sweep_intents))
            if trusted_ms >= PERIOD_MS:
                self._left.appendleft(self._sweep_workers)
        if await self._left[0]():
            self._left.rotate(-1)
            return
        self._left.popleft()
        if not self._left:
            self._done_at = now

    async def _sweep_jobs(self) -> bool:
        return (await self._jobs.sweep(self._app, BATCH)).more

    async def _sweep_ledger(self) -> bool:
        after = await self._store.sweep_ledger(self._app, self._keep, BATCH, self._after)
        self._after = after or ""
        return after is not None

    async def _sweep_deliveries(self) -> bool:
        return await self._store.sweep_deliveries(self._app, self._keep, BATCH) == BATCH

    async def _sweep_intents(self) -> bool:
        return await self._store.sweep_intents(self._app, self._keep, BATCH) == BATCH

    async def _sweep_workers(self) -> bool:
        hours = self._keep.silent_worker_ms // 3_600_000
        for worker_id in await self._store.sweep_workers(self._keep, BATCH):
            log.warning("worker %s is removed: it was silent for %d h or more", worker_id, hours)
        return False
