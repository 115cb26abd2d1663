"""Acts on due ticks: asks the payload function, then settles the tick. Every worker may, each tick fires once."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kizami.core.errors import KizamiError, StoreError
from kizami.core.results import shorten_error
from kizami.core.times import format_local
from kizami.core.timing import zone_data_of, zone_of
from kizami.store.protocol import Editions, Fire, FireOutcome, NewJob, Registration, TickKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kizami.core.zone import TimeZone
    from kizami.engine.performing import Scheduled
    from kizami.engine.station import Station
    from kizami.engine.waker import Waker
    from kizami.store.protocol import DuePage, DueSchedule, FireRecord, Moved, Superseded

log = logging.getLogger("kizami.scheduler")
DUE_MAX: Final = 500


async def make_job(scheduled: Scheduled, scheduled_at: int, limit_ms: int, *, manual: bool = False) -> NewJob | str:
    """Return the job of a tick, or the reason why there is none. The payload function runs off the event loop."""
    name, function = scheduled.definition.name, scheduled.payload_function
    payload = scheduled.payload
    try:
        if function is not None:
            payload = await function.answer(scheduled_at, limit_ms, manual=manual)
        return scheduled.check_job(payload, scheduled_at, manual)
    except KizamiError as error:
        return shorten_error(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a payload function raises settles its tick as failed
        return f"the payload function of {name} raised {shorten_error(error)}"


class Firer:
    """One worker's share of the clock."""

    def __init__(
        self,
        station: Station,
        schedules: Mapping[str, Scheduled],
        waker: Waker,
    ) -> None:
        self._app = station.app
        self._worker_id = station.worker_id
        self._store = station.store.schedules
        self._workers = station.store.workers
        self._clock = station.runtime.clock
        self._settings = station.settings
        self._schedules = schedules
        self._waker = waker
        self._standing = Registration(0, Editions(0, 0), {}, ())
        self._newer_went_boot: int | None = None
        self._broken: dict[str, str] = {}
        self._firing: dict[str, asyncio.Task[None]] = {}
        self.part = station.condition.part("firer", station.settings.poll_ms)

    async def register(self) -> None:
        """Make the stored schedules follow this process's code, unless newer code is in force."""
        before = {each.schedule for each in self._standing.superseded}
        self._standing = await self._store.register(
            self._app,
            [entry.definition for entry in self._schedules.values()],
            worker_id=self._worker_id,
            silent_ms=self._settings.grace_ms,
        )
        self._newer_went_boot = None
        await self._tell_superseded([each for each in self._standing.superseded if each.schedule not in before])
        for moved in self._standing.moved:
            _tell_moved(moved)
        for name in sorted(before & self._standing.versions.keys()):
            log.info("schedule %s: the definition of this process is in force again", name)

    async def _tell_superseded(self, superseded: Sequence[Superseded]) -> None:
        """Tell which definitions of this process are not in force, and whose may be."""
        for each in superseded:
            log.warning("%s", each)
        if superseded:
            others = [one.process for one in await self._workers.list(self._app) if one.worker_id != self._worker_id]
            log.warning(
                "app %s has other code in force, workers now: %s. If that is another program, give one of the two "
                "another name, as in Kizami(name=...), or a database of its own",
                self._app,
                ", ".join(f"process {one.pid} on {one.host}" for one in others) or "none",
            )

    async def run(self) -> None:
        """Fire for ever; a failing store leaves ticks owed and is tried again."""
        while True:
            self._waker.clear()
            wait_ms = self._settings.poll_ms
            try:
                wait_ms = await self._look()
                self.part.well()
            except StoreError as error:
                self.part.ailing(f"schedules can't be read now: {error}")
            await self._waker.wait(max(1, wait_ms))

    async def stop(self) -> None:
        """Break off what is being fired; those ticks stay owed."""
        for task in tuple(self._firing.values()):
            task.cancel()
        await asyncio.gather(*self._firing.values(), return_exceptions=True)

    async def _look(self) -> int:
        await self._follow_editions()
        page = await self._due()
        if await self._tell_of_broken(page.broken):
            page = await self._due()
        for due in page.due:
            if due.name not in self._firing:
                task = asyncio.create_task(self._fire(due), name=f"kizami-fire {due.name}")
                self._firing[due.name] = task
        if page.next_planned_at is None:
            return self._settings.poll_ms
        return min(self._settings.poll_ms, page.next_planned_at - page.now)

    async def _due(self) -> DuePage:
        """Return due ticks, but for those that are being settled: however many of these are slow, others have room."""
        versions = {name: each for name, each in self._standing.versions.items() if name not in self._firing}
        return await self._store.due(self._app, versions, DUE_MAX)

    async def _tell_of_broken(self, broken: Mapping[str, str]) -> bool:
        """Say once which schedules can't fire; where this code defines one, register it anew, which mends it."""
        told, self._broken = self._broken, dict(broken)
        new = [name for name in broken if told.get(name) != broken[name]]
        for name in new:
            log.error("schedule %s is broken and doesn't fire: %s", name, broken[name])
        mends = any(name in self._standing.versions for name in new)
        if mends:
            await self.register()
        return mends

    async def _follow_editions(self) -> None:
        """Register anew when another edition came into force, or newer code has been gone for a grace time.

        Newer code that went may only be starting again; what both editions share goes on firing meanwhile.
        """
        mine, grace_ms = self._standing.edition, self._settings.grace_ms
        now = await self._store.editions(self._app, besides=self._worker_id, silent_ms=grace_ms)
        newer_went = now.others <= mine < now.in_force
        if newer_went and self._newer_went_boot is None:
            self._newer_went_boot = self._clock.boot_ms()
        if not newer_went:
            self._newer_went_boot = None
        elif self._clock.boot_ms() - (self._newer_went_boot or 0) < grace_ms:
            return
        if newer_went or now != self._standing.editions:
            await self.register()

    async def _fire(self, due: DueSchedule) -> None:
        try:
            _tell(await self._settle(due), zone_of(self._schedules[due.name].definition.timing))
        except StoreError as error:
            log.warning("tick of %s stays owed: %s", due.name, error)
            await self._clock.sleep(self._settings.poll_ms / 1000)
        except KizamiError:
            log.exception("tick of %s could not be settled", due.name)
            await self._clock.sleep(self._settings.poll_ms / 1000)
        finally:
            del self._firing[due.name]
            self._waker.wake()

    async def _settle(self, due: DueSchedule) -> FireRecord:
        scheduled = self._schedules[due.name]
        skip = due.outstanding is not None and scheduled.definition.overlap == "skip"
        made = None if skip else await make_job(scheduled, due.planned_at, self._settings.payload_ms)
        fire = Fire(
            self._app,
            due.name,
            due.version,
            TickKind.PLANNED,
            due.planned_at,
            self._worker_id,
            job=made if isinstance(made, NewJob) else None,
            refusal=made if isinstance(made, str) else None,
        )
        return (await self._store.fire([fire]))[0]


def _tell_moved(moved: Moved) -> None:
    """Tell of a plan that was made anew by another time-zone database; loudly if that changed it."""
    zone = zone_of(moved.timing)
    before, after = ("none" if at is None else format_local(at, zone) for at in (moved.before, moved.after))
    editions = f"by the time-zone database {zone_data_of(moved.timing)} instead of {moved.zone_data or 'none'}"
    if moved.before == moved.after:
        log.info("schedule %s is planned %s; its next tick stays %s", moved.schedule, editions, after)
    else:
        log.warning(
            "schedule %s is planned %s: its next tick was %s and is %s", moved.schedule, editions, before, after
        )


def _tell(record: FireRecord, zone: TimeZone) -> None:
    at = format_local(record.planned_at, zone)
    match record.outcome:
        case FireOutcome.FAILED:
            log.error("tick of %s at %s failed: %s", record.schedule, at, record.reason)
        case FireOutcome.SKIPPED_OVERLAP:
            log.info("tick of %s at %s skipped: %s", record.schedule, at, record.reason)
        case _:
            log.debug("tick of %s at %s: %s", record.schedule, at, record.outcome)
