"""Schedules and ticks: what is planned, what became of it, and how to stop, resume and fire."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kizami.core.errors import InvalidInputError
from kizami.core.times import format_local, to_datetime
from kizami.store.protocol import FireOutcome
from kizami.web.current import App, Asking, acted_by
from kizami.web.shapes import (
    FireAnswer,
    PlannedTime,
    Preview,
    ScheduleAnswer,
    ScheduleDetail,
    ScheduleList,
    TickAnswer,
    TickRequest,
)
from kizami.web.views import fire_answer, schedule_answer, schedule_detail, zone_of

router = APIRouter(tags=["schedules"])
_EXTERNAL_CLOCK = "external clock (http)"


@router.get("/schedules")
async def list_schedules(app: App) -> ScheduleList:
    """Return the schedules by name."""
    now = await app.store.schedules.now()
    return ScheduleList(schedules=tuple(schedule_answer(one, now) for one in await app.schedules.list()))


@router.get("/schedules/{name}")
async def get_schedule(app: App, name: str, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> ScheduleDetail:
    """Return one schedule with the newest `limit` lines of its fire ledger."""
    schedule = await app.schedules.get(name)
    ledger = await app.schedules.ledger(name, limit)
    return schedule_detail(schedule, ledger, await app.store.schedules.now())


@router.get("/schedules/{name}/preview")
async def preview_schedule(app: App, name: str, count: Annotated[int, Query(ge=1, le=200)] = 10) -> Preview:
    """Return the next `count` planned times."""
    zone = zone_of((await app.schedules.get(name)).timing)
    times = await app.schedules.preview(name, count)
    return Preview(schedule=name, fires=tuple(PlannedTime(at=at, local=format_local(at, zone)) for at in times))


@router.post("/schedules/{name}/pause")
async def pause_schedule(app: App, name: str) -> ScheduleAnswer:
    """Stop firing; pausing twice is harmless."""
    return schedule_answer(await app.schedules.pause(name), await app.store.schedules.now())


@router.post("/schedules/{name}/resume")
async def resume_schedule(app: App, name: str) -> ScheduleAnswer:
    """Fire again from the first boundary strictly after now; what passed is dropped."""
    return schedule_answer(await app.schedules.resume(name), await app.store.schedules.now())


@router.post("/schedules/{name}/trigger")
async def trigger_schedule(app: App, name: str, asking: Asking) -> FireAnswer:
    """Fire once now, even when paused; 409 with the holder while the schedule's lease is held."""
    zone = zone_of((await app.schedules.get(name)).timing)
    return fire_answer(await app.schedules.trigger(name, by=acted_by(asking)), zone)


@router.post("/ticks")
async def deliver_tick(app: App, tick: TickRequest) -> TickAnswer:
    """Fire the tick that an external clock delivers; answers after commit. Delivered again, it is a duplicate."""
    if tick.manual and tick.scheduled_at is not None:
        raise InvalidInputError("A manual tick fires now.", remedy="Leave out scheduled_at.", path="scheduled_at")
    at = None if tick.scheduled_at is None else to_datetime(tick.scheduled_at, name="scheduled_at")
    record = await app.schedules.tick(tick.schedule, at, manual=tick.manual, by=_EXTERNAL_CLOCK)
    return TickAnswer(
        duplicate=record.outcome is FireOutcome.DUPLICATE,
        outcome=record.outcome,
        job_id=record.job_id,
        scheduled_at=record.planned_at,
        reason=record.reason,
    )
