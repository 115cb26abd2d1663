"""Schedules, fires and their ledger, briefly."""

from __future__ import annotations

from kizami.core.timing import Timing, cron_timing, fingerprint
from kizami.store.protocol import (
    Fire,
    FireOutcome,
    FireRecord,
    NewJob,
    Schedule,
    ScheduleDefinition,
    Store,
    TickKind,
)
from tests.conformance.whole_store import APP, BINDING

MINUTE_MS = 60_000
EVERY_MINUTE = cron_timing("* * * * *")
NAME = "report"


def defined(
    name: str = NAME,
    timing: Timing = EVERY_MINUTE,
    *,
    overlap: str = "overlap",
    driver: str = "inner",
    lease: str | None = None,
    note: str = "",
) -> ScheduleDefinition:
    parts = (name, fingerprint(timing), overlap, driver, str(lease), note)
    return ScheduleDefinition(name, timing, BINDING, overlap, driver, lease, "|".join(parts), note)


async def register(store: Store, *definitions: ScheduleDefinition) -> dict[str, int]:
    """Register definitions as the one worker w1 that now runs other code; return the versions in force."""
    return (await store.schedules.register(APP, definitions, worker_id="w1")).versions


async def one(store: Store, name: str = NAME) -> Schedule:
    found = await store.schedules.get(APP, name)
    assert found is not None
    return found


async def planned_at(store: Store, name: str = NAME) -> int:
    at = (await one(store, name)).next_at
    assert at is not None
    return at


def tick_job() -> NewJob:
    return NewJob(APP, BINDING, "the store names it", "{}")


def at_tick(
    scheduled_at: int,
    version: int = 1,
    kind: TickKind = TickKind.PLANNED,
    *,
    name: str = NAME,
    job: bool = True,
    refusal: str | None = None,
) -> Fire:
    made = tick_job() if job and refusal is None else None
    return Fire(APP, name, version, kind, scheduled_at, "w1", job=made, refusal=refusal)


async def fire(store: Store, wanted: Fire) -> FireRecord:
    return (await store.schedules.fire([wanted]))[0]


async def fire_planned(store: Store, version: int = 1) -> FireRecord:
    """Fire whatever is planned now."""
    return await fire(store, at_tick(await planned_at(store), version))


async def external(store: Store, scheduled_at: int, version: int = 1) -> FireRecord:
    return await fire(store, at_tick(scheduled_at, version, kind=TickKind.EXTERNAL))


Line = tuple[FireOutcome, int, int, int]


async def ledger(store: Store, name: str = NAME) -> list[Line]:
    """Return outcome, first and last planned time and count of each line about the plan, oldest first."""
    lines = await store.schedules.ledger(APP, name, 10_000)
    return [
        (line.outcome, line.planned_at, line.planned_last_at, line.count)
        for line in reversed(lines)
        if line.kind is not TickKind.MANUAL
    ]


async def counted(store: Store, name: str = NAME) -> int:
    """Return how many planned ticks the ledger accounts for."""
    return sum(line[3] for line in await ledger(store, name))
