"""Settling ticks: whatever becomes of one, its ledger row, its job and the new plan are one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import InvalidInputError, LeaseHeldError, NotFoundError
from kizami.core.names import job_id, manual_local_id, tick_local_id
from kizami.core.results import shorten_error
from kizami.core.states import OUTSTANDING
from kizami.store.protocol import Fire, FireOutcome, FireRecord, TickKind
from kizami.store.sqlite import plans
from kizami.store.sqlite.job_insert import home_of, insert_job
from kizami.store.sqlite.schedule_rows import fire_record
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.protocol import NewJob
    from kizami.store.sqlite.database import Moment

SQL: Final = load("schedules")


def settle(connection: sqlite3.Connection, moment: Moment, fire: Fire) -> FireRecord:
    """Act on one tick; STALE, SUPERSEDED and DUPLICATE answers have written nothing."""
    row = connection.execute(SQL["one"], {"app": fire.app, "name": fire.schedule}).fetchone()
    if row is None:
        if fire.kind is TickKind.PLANNED:
            return _unwritten(fire, moment, FireOutcome.SUPERSEDED, "the schedule was removed")
        raise NotFoundError(
            f"There is no schedule {fire.schedule} in app {fire.app}.",
            remedy="`kizami schedules list MODULE:APP` lists them.",
            schedule=fire.schedule,
        )
    if fire.kind is TickKind.MANUAL:
        return _fire_manually(connection, moment, fire, row)
    refused = _not_ours_to_settle(connection, moment, fire, row)
    return refused or _settle_tick(connection, moment, fire, row)


def _not_ours_to_settle(
    connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row
) -> FireRecord | None:
    if fire.kind is TickKind.EXTERNAL:
        settled_before = fire.scheduled_at <= (row["settled_at"] or 0)
        return _duplicate(connection, moment, fire) if settled_before else None
    if row["version"] != fire.version:
        return _unwritten(fire, moment, FireOutcome.SUPERSEDED, "a newer definition is registered")
    if row["planned_at"] != fire.scheduled_at or row["paused_at"] is not None or fire.scheduled_at > moment.now:
        return _unwritten(fire, moment, FireOutcome.STALE, "it is not the plan any more")
    if fire.job is None and fire.refusal is None and _outstanding(connection, row) is None:
        return _unwritten(fire, moment, FireOutcome.STALE, "its previous job has just ended")
    return None


def _settle_tick(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord:
    plan = plans.plan_after_tick(row, fire, moment)
    fire, shard = _placed(connection, moment, fire)
    outcome, reason, job = _decide(connection, fire, row)
    public = None if job is None else job_id(job.binding, shard, job.local_id)
    values = _record_values(fire, moment, outcome, reason, public, row["version"])
    if connection.execute(SQL["record"], values).rowcount == 0:
        # The ledger has this tick already, whatever the plan says: move on without a second job.
        outcome, job = FireOutcome.DUPLICATE, None
    key = None if job is None else insert_job(connection, moment, job)[1]
    plans.record_missed(connection, moment, row, plan)
    settled: dict[str, Any] = values | {
        "next_at": plan.next_at,
        "settled_at": max(plan.dropped_last or 0, fire.scheduled_at),
        "scheduled_at": fire.scheduled_at,
        "fired": int(outcome is FireOutcome.FIRED),
        "job_key": key,
        "skipped": int(outcome is FireOutcome.SKIPPED_OVERLAP),
        "missed": plan.dropped + int(outcome is FireOutcome.PAUSED),
        "error": fire.refusal if outcome is FireOutcome.FAILED else None,
    }
    connection.execute(SQL["settle"], settled)
    if outcome is FireOutcome.DUPLICATE:
        return _duplicate(connection, moment, fire)
    return _answer(fire, moment, outcome, reason, public, row["version"])


def _placed(connection: sqlite3.Connection, moment: Moment, fire: Fire) -> tuple[Fire, int]:
    """Return the fire and its job's shard; a job that its binding refuses settles the tick as failed."""
    if fire.job is None:
        return fire, 0
    try:
        return fire, home_of(connection, moment, fire.job).shard_of(fire.job)
    except (NotFoundError, InvalidInputError) as error:
        return replace(fire, job=None, refusal=shorten_error(str(error))), 0


def _decide(
    connection: sqlite3.Connection, fire: Fire, row: sqlite3.Row
) -> tuple[FireOutcome, str | None, NewJob | None]:
    if row["paused_at"] is not None:
        return FireOutcome.PAUSED, "paused", None
    if fire.check_overlap and row["overlap"] == "skip":
        previous = _outstanding(connection, row)
        if previous is not None:
            return FireOutcome.SKIPPED_OVERLAP, f"the previous job {previous} has not ended", None
    if fire.job is None:
        return FireOutcome.FAILED, fire.refusal, None
    return FireOutcome.FIRED, None, replace(fire.job, local_id=tick_local_id(fire.schedule, fire.scheduled_at))


def _outstanding(connection: sqlite3.Connection, row: sqlite3.Row) -> str | None:
    if row["last_job_key"] is None:
        return None
    job = connection.execute(SQL["previous_job"], {"key": row["last_job_key"]}).fetchone()
    if job is None or job["state"] not in OUTSTANDING:
        return None
    return job_id(job["binding"], job["shard"], job["local_id"])


def _fire_manually(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord:
    _refuse_held_lease(connection, moment, fire, row)
    if fire.job is None:
        values = {"app": fire.app, "name": fire.schedule, "error": fire.refusal, "now": moment.now}
        connection.execute(SQL["manual_error"], values)
        outcome, public = FireOutcome.FAILED, None
    else:
        found = connection.execute(SQL["next_manual"], {"app": fire.app, "name": fire.schedule}).fetchall()
        local_id = manual_local_id(fire.schedule, fire.scheduled_at, found[0]["manual_sequence"])
        enqueued, _ = insert_job(connection, moment, replace(fire.job, local_id=local_id))
        outcome, public = FireOutcome.FIRED, enqueued.job_id
    values = _record_values(fire, moment, outcome, fire.refusal, public, row["version"])
    connection.execute(SQL["record"], values)
    return _answer(fire, moment, outcome, fire.refusal, public, row["version"])


def _refuse_held_lease(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> None:
    if row["lease"] is None:
        return
    held = connection.execute(SQL["held_lease"], {"app": fire.app, "lease": row["lease"]}).fetchone()
    if held is None or held["boot_id"] != moment.boot_id or fire.lease_is_stale(moment.boot - held["heartbeat_boot"]):
        return
    raise LeaseHeldError(
        f"The lease {row['lease']} of schedule {fire.schedule} is held by {held['holder']}.",
        remedy="Trigger again when that run has ended.",
        holder=held["holder"],
        started_at=held["started_at"],
        heartbeat_at=held["heartbeat_at"],
    )


def _duplicate(connection: sqlite3.Connection, moment: Moment, fire: Fire) -> FireRecord:
    values = {"app": fire.app, "schedule": fire.schedule, "planned_at": fire.scheduled_at}
    row = connection.execute(SQL["recorded"], values).fetchone()
    if row is None:
        return _unwritten(fire, moment, FireOutcome.DUPLICATE, "a later tick has been settled already")
    return replace(
        fire_record(row), outcome=FireOutcome.DUPLICATE, reason=f"this tick was settled already ({row['outcome']})"
    )


def _unwritten(fire: Fire, moment: Moment, outcome: FireOutcome, reason: str) -> FireRecord:
    return _answer(fire, moment, outcome, reason, None, fire.version)


def _answer(
    fire: Fire, moment: Moment, outcome: FireOutcome, reason: str | None, public: str | None, version: int
) -> FireRecord:
    at = fire.scheduled_at
    return FireRecord(fire.schedule, fire.kind, outcome, at, at, 1, moment.now, fire.by, public, reason, version)


def _record_values(
    fire: Fire, moment: Moment, outcome: FireOutcome, reason: str | None, public: str | None, version: int
) -> dict[str, Any]:
    return {
        "app": fire.app,
        "schedule": fire.schedule,
        "kind": str(fire.kind),
        "outcome": str(outcome),
        "planned_at": fire.scheduled_at,
        "planned_last_at": fire.scheduled_at,
        "count": 1,
        "now": moment.now,
        "by": fire.by,
        "job_id": public,
        "reason": reason,
        "version": version,
    }
