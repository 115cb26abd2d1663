"""From what the store keeps to what people and programs read: local times, lateness, JSON values."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from kizami.core.times import MS_PER_SECOND, format_local, format_offset
from kizami.core.timing import CronTiming, to_json
from kizami.core.zone import TimeZone, load_zone
from kizami.web.shapes import (
    DeliveryAnswer,
    FireAnswer,
    JobAnswer,
    ScheduleAnswer,
    ScheduleDetail,
    Stats,
    WorkerAnswer,
    json_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kizami.app.app import Kizami
    from kizami.core.times import EpochMs
    from kizami.core.timing import Timing
    from kizami.store.protocol import Delivery, FireRecord, Job, Schedule, Worker
    from kizami.web.counts import Counts


def zone_of(timing: Timing | None) -> TimeZone:
    """Return the zone that a timing's local times are in; UTC for an interval and where there is none."""
    return timing.zone if isinstance(timing, CronTiming) else load_zone("UTC")


def local(at: EpochMs | None, zone: TimeZone) -> str | None:
    """Return an instant for people, if there is one."""
    return None if at is None else format_local(at, zone)


def lateness_ms(schedule: Schedule) -> int | None:
    """Return how late the last fire was; None while the last planned time has not been fired."""
    planned, fired = schedule.last_planned_at, schedule.last_fired_at
    return None if planned is None or fired is None or fired < planned else fired - planned


def job_answer(job: Job) -> JobAnswer:
    """Return a job as the API shows it."""
    stored = {field.name: getattr(job, field.name) for field in fields(job)}
    parsed = {"payload": json_value(job.payload), "result": json_value(job.result)}
    return JobAnswer.model_validate({**stored, **parsed})


def schedule_answer(schedule: Schedule, now: EpochMs) -> ScheduleAnswer:
    """Return a schedule as the API shows it."""
    return ScheduleAnswer.model_validate(_schedule_values(schedule, now))


def schedule_detail(schedule: Schedule, ledger: Iterable[FireRecord], now: EpochMs) -> ScheduleDetail:
    """Return a schedule with its ledger as the API shows it."""
    zone = zone_of(schedule.timing)
    lines = tuple(fire_answer(record, zone) for record in ledger)
    return ScheduleDetail.model_validate({**_schedule_values(schedule, now), "ledger": lines})


def fire_answer(record: FireRecord, zone: TimeZone) -> FireAnswer:
    """Return a line of the fire ledger as the API shows it, in its schedule's zone."""
    stored = asdict(record)
    times = {
        f"{name}_local": format_local(stored[name], zone) for name in ("planned_at", "planned_last_at", "acted_at")
    }
    return FireAnswer.model_validate({**stored, **times, "lateness_ms": max(0, record.acted_at - record.planned_at)})


def delivery_answer(delivery: Delivery) -> DeliveryAnswer:
    """Return a delivery as the API shows it."""
    return DeliveryAnswer.model_validate({**asdict(delivery), "content": json_value(delivery.content)})


def worker_answer(worker: Worker) -> WorkerAnswer:
    """Return a worker as the API shows it."""
    return WorkerAnswer(
        worker_id=worker.worker_id,
        host=worker.process.host,
        pid=worker.process.pid,
        bindings=worker.bindings,
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        note=worker.note,
    )


async def stats_of(app: Kizami, counts: Counts) -> Stats:
    """Return the app's counts."""
    counted = await counts.jobs()
    return Stats(
        counted_at=counted.at,
        jobs=counted.total,
        bindings={binding: dict(states) for binding, states in counted.bindings.items()},
        deliveries=await app.store.deliveries.counts(app.name),
        workers=len(await app.store.workers.list(app.name)),
    )


def _schedule_values(schedule: Schedule, now: EpochMs) -> dict[str, Any]:
    zone = zone_of(schedule.timing)
    values: dict[str, Any] = {field.name: getattr(schedule, field.name) for field in fields(schedule)}
    instants = [name for name in values if name.endswith("_at")]
    values |= {f"{name}_local": local(values[name], zone) for name in instants}
    shown_at = now if schedule.next_at is None else schedule.next_at
    return values | {
        "timing": None if schedule.timing is None else to_json(schedule.timing),
        "time_zone": zone.name,
        "gmt_offset": format_offset(zone.offset_at(shown_at // MS_PER_SECOND)),
        "lateness_ms": lateness_ms(schedule),
    }
