"""What people and external clocks do with schedules, on an open app."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from kizami.app.windows import require_kept
from kizami.core.errors import FireRefusedError, NotFoundError, NotPlannedError
from kizami.core.times import format_local, to_epoch_ms
from kizami.core.timing import fires, is_planned, latest_at_or_before, zone_of
from kizami.engine.firer import make_job
from kizami.store.protocol import Fire, FireOutcome, TickKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from kizami.app.definitions import ScheduleInCode
    from kizami.core.times import EpochMs
    from kizami.engine.settings import WorkerSettings
    from kizami.store.protocol import FireRecord, Schedule, Store

log = logging.getLogger("kizami.scheduler")


class Schedules:
    """An app's schedules."""

    def __init__(self, app: str, store: Store, code: Mapping[str, ScheduleInCode], settings: WorkerSettings) -> None:
        self._app = app
        self._store = store.schedules
        self._code = code
        self._settings = settings

    async def list(self) -> tuple[Schedule, ...]:
        """Return the stored schedules by name."""
        return await self._store.list(self._app)

    async def get(self, name: str) -> Schedule:
        """Return one stored schedule. Raises NotFoundError."""
        found = await self._store.get(self._app, name)
        if found is None:
            raise NotFoundError(
                f"There is no schedule {name} in app {self._app}.",
                remedy="`kizami schedules list MODULE:APP` lists them.",
            )
        return found

    async def ledger(self, name: str | None = None, limit: int = 50) -> tuple[FireRecord, ...]:
        """Return the newest lines of the fire ledger, of one schedule or of all."""
        return await self._store.ledger(self._app, name, limit)

    async def preview(self, name: str, count: int) -> tuple[EpochMs, ...]:
        """Return the next planned times, epoch ms. Raises NotFoundError."""
        found = await self.get(name)
        upcoming = fires(found.known_timing, await self._store.now(), found.anchor_at)
        return tuple(next(upcoming) for _ in range(count))

    async def pause(self, name: str) -> Schedule:
        """Stop a schedule's fires; its jobs that are enqueued already go on. Raises NotFoundError."""
        return await self._store.pause(self._app, name)

    async def resume(self, name: str) -> Schedule:
        """Fire again from the first boundary after now; what passed is dropped. Raises NotFoundError."""
        return await self._store.resume(self._app, name)

    async def trigger(self, name: str, *, by: str = "manual") -> FireRecord:
        """Fire once now, even when paused, without overlap check; the plan is unchanged.

        Raises NotFoundError, LeaseHeldError, and FireRefusedError when there is no payload for it or it is refused.
        """
        _, version = await self._stored(name)
        record = await self._fire(name, TickKind.MANUAL, await self._store.now(), by, version)
        if record.outcome is FireOutcome.FAILED:
            raise FireRefusedError(
                f"Schedule {name} was not fired: {record.reason}",
                remedy="Mend its payload function or its payload; the refused fire stands in its ledger.",
                schedule=name,
            )
        return record

    async def tick(
        self,
        name: str,
        scheduled_at: datetime | None = None,
        *,
        manual: bool = False,
        by: str = "external",
        register: bool = False,
    ) -> FireRecord:
        """Fire a tick that an external clock delivers; returns after commit.

        Without `scheduled_at` the tick is the latest planned time that isn't after now; a cron plan has no beginning,
        so it may be one from before the registration. A tick delivered again has the outcome DUPLICATE, one that a
        later tick overtook OVERTAKEN, one of code that is not in force SUPERSEDED.
        `register` puts this process's code in force first, unless a worker lives: for apps that no worker serves.
        Raises NotFoundError, NotPlannedError, and with `manual` what `trigger` raises.
        """
        if manual:
            return await self.trigger(name, by=by)
        stored, version = await self._stored(name, redefine=register)
        at = await self._planned(stored, scheduled_at)
        record = await self._fire(name, TickKind.EXTERNAL, at, by, version)
        if record.outcome in (FireOutcome.DUPLICATE, FireOutcome.OVERTAKEN):
            log.info("%s tick: %s-%d, %s", record.outcome, name, at, record.reason)
        return record

    async def _planned(self, stored: Schedule, scheduled_at: datetime | None) -> EpochMs:
        now = await self._store.now()
        if scheduled_at is None:
            latest = latest_at_or_before(stored.known_timing, now, stored.anchor_at)
            if latest is None:
                raise NotPlannedError(
                    f"Schedule {stored.name} has no planned time yet.", remedy="Tick it after its first one."
                )
            return latest
        at = to_epoch_ms(scheduled_at, name="scheduled_at")
        if at > now:
            raise _not_planned(
                stored,
                at,
                "lies in the future",
                "Deliver it when its time has come; compare the clocks of both machines.",
            )
        if not is_planned(stored.known_timing, at, stored.anchor_at):
            remedy = "Pass the platform's scheduled time, or leave it out to take the latest planned one."
            raise _not_planned(stored, at, "is not a planned time", remedy)
        return at

    async def _stored(self, name: str, *, redefine: bool = False) -> tuple[Schedule, int]:
        """Return a schedule and the version of it that this process's code defines; 0 where that is not in force.

        Schedules that were never stored are, where no worker lives. Whatever is stored stays, unless told otherwise: an
        old process must not bring back what newer code changed or removed.
        """
        version = 0
        if name in self._code:
            await require_kept(self._app, self._code.values(), self._store, await self._store.now())
            definitions = [entry.scheduled().definition for entry in self._code.values()]
            registration = await self._store.register(
                self._app, definitions, silent_ms=self._settings.grace_ms, redefine=redefine
            )
            version = registration.versions.get(name, 0)
            for each in registration.superseded:
                if each.schedule == name:
                    log.warning(
                        "schedule %s: version %d is stored, which is not this code's; start a worker of this code, or, "
                        "where only external clocks run, tick it with --register",
                        name,
                        each.by_version,
                    )
        return await self.get(name), version

    async def _fire(self, name: str, kind: TickKind, at: EpochMs, by: str, version: int) -> FireRecord:
        """Settle a tick; its payload function runs only if the tick turns out to want a job."""
        code = self._code.get(name)
        if code is None:
            raise NotFoundError(
                f"Schedule {name} is stored, but this app's code does not define it.",
                remedy="Run this with the module that defines it.",
                schedule=name,
            )
        asked = Fire(self._app, name, version, kind, at, by, lease_stale_ms=self._settings.lease.stale_ms)
        (record,) = await self._store.fire([asked])
        if record.outcome is not FireOutcome.STALE:
            return record
        made = await make_job(code.scheduled(), at, self._settings.payload_ms, manual=kind is TickKind.MANUAL)
        settled = replace(asked, refusal=made) if isinstance(made, str) else replace(asked, job=made)
        return (await self._store.fire([settled]))[0]


def _not_planned(stored: Schedule, at: EpochMs, why: str, remedy: str) -> NotPlannedError:
    message = (
        f"{format_local(at, zone_of(stored.known_timing))} {why} of schedule {stored.name} ({stored.description})."
    )
    return NotPlannedError(message, remedy=remedy, path="scheduled_at")
