"""Shows with the worker's row what keeps it from working fully, so that people see it without its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kizami.engine.station import Station


class Watch:
    """Compares what is shown with what is so, every poll time."""

    def __init__(self, station: Station, bars: Callable[[], Iterable[str]]) -> None:
        self.part = station.condition.part("watch", station.settings.poll_ms)
        self._station = station
        self._bars = bars
        self._shown: str | None = None

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self._look()
                self.part.well()
            except StoreError as error:
                self.part.ailing(f"the worker's condition can't be shown now: {error}")
            await self._station.runtime.clock.sleep(self._station.settings.poll_ms / 1000)

    async def _look(self) -> None:
        now = " ".join((*self._bars(), *self._station.condition.troubles)) or None
        if now != self._shown:
            await self._station.store.workers.note(self._station.worker_id, now)
            self._shown = now
