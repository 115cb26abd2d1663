"""Settling ticks: whatever becomes of one, its ledger row, its job and the new plan are one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import LeaseHeldError, NotFoundError
from kizami.core.names import job_id, manual_local_id, tick_local_id
from kizami.core.states import OUTSTANDING
from kizami.store.protocol import Fire, FireOutcome, FireRecord, TickKind
from kizami.store.sqlite import plans
from kizami.store.sqlite.jobs import insert_job
from kizami.store.sqlite.schedule_rows import fire_record
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.protocol import NewJob
    from kizami.store.sqlite.database import Moment

SQL: Final = load("schedules")


def settle(connection: sqlite3.Connection, moment: Moment, fire: Fire) -> FireRecord:
    """Act on one tick; STALE, SUPERSEDED and DUPLICATE answers have written nothing (FireRecord says more)."""
    row = connection.execute(SQL["one"], {"app": fire.app, "name": fire.schedule}).fetchone()
    if row is None:
        if fire.kind is TickKind.PLANNED:
            return _unwritten(fire, moment, FireOutcome.SUPERSEDED, "the schedule was removed")
        raise NotFoundError(
            f"There is no schedule {fire.schedule} in app {fire.app}.",
            remedy="`kizami schedules list MODULE:APP` lists them.",
            schedule=fire.schedule,
        )
    settled = _settled_before(connection, moment, fire, row) if fire.kind is TickKind.EXTERNAL else None
    if settled is not None:
        return settled
    if row["version"] != fire.version:
        return _unwritten(fire, moment, FireOutcome.SUPERSEDED, f"version {row['version']} of it is in force")
    if fire.kind is TickKind.MANUAL:
        return _fire_manually(connection, moment, fire, row)
    return _not_to_settle(connection, moment, fire, row) or _settle_tick(connection, moment, fire, row)


def _not_to_settle(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord | None:
    if fire.kind is TickKind.PLANNED and (
        row["planned_at"] != fire.scheduled_at or row["paused_at"] is not None or fire.scheduled_at > moment.now
    ):
        return _unwritten(fire, moment, FireOutcome.STALE, "it is not the plan any more")
    if _asks(fire) and row["paused_at"] is None and _blocker(connection, fire, row) is None:
        return _unwritten(fire, moment, FireOutcome.STALE, "nothing keeps it from firing")
    return None


def _asks(fire: Fire) -> bool:
    """Tell whether the caller has made no job yet, because the tick may not want one."""
    return fire.job is None and fire.refusal is None


def _settled_before(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord | None:
    """Return the answer to an external tick whose time is settled: delivered again, or overtaken by a later one."""
    line = _line_about(connection, fire)
    if line is not None and line.kind is TickKind.PLANNED and line.outcome in (FireOutcome.MISSED, FireOutcome.PAUSED):
        reason = f"it was dropped before it was delivered ({line.outcome}: {line.reason})"
        return _unwritten(fire, moment, FireOutcome.OVERTAKEN, reason)
    if line is not None:
        return _duplicate(line)
    if fire.scheduled_at > (row["settled_at"] or 0):
        return None
    reason = "a later tick was settled before it was delivered"
    connection.execute(SQL["record"], _record_values(fire, moment, FireOutcome.OVERTAKEN, reason, None, row["version"]))
    dropped = {"app": fire.app, "name": fire.schedule, "settled_at": fire.scheduled_at, "dropped": 1}
    connection.execute(SQL["drop"], dropped)
    return _answer(fire, moment, FireOutcome.OVERTAKEN, reason, None, row["version"])


def _settle_tick(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord:
    plan = plans.plan_after_tick(row, fire, moment)
    outcome, reason, job = _decide(connection, fire, row)
    public = None if job is None else job_id(job.binding, job.shard, job.local_id)
    values = _record_values(fire, moment, outcome, reason, public, row["version"])
    if connection.execute(SQL["record"], values).rowcount == 0:
        # The ledger has this tick already, whatever the plan says: move on without a second job.
        outcome, job = FireOutcome.DUPLICATE, None
    key = None if job is None else insert_job(connection, job, moment.now)[1]
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
        return _answer(fire, moment, outcome, "this tick was settled already", None, row["version"])
    return _answer(fire, moment, outcome, reason, public, row["version"])


def _decide(
    connection: sqlite3.Connection, fire: Fire, row: sqlite3.Row
) -> tuple[FireOutcome, str | None, NewJob | None]:
    if row["paused_at"] is not None:
        return FireOutcome.PAUSED, "paused", None
    previous = _blocker(connection, fire, row)
    if previous is not None:
        return FireOutcome.SKIPPED_OVERLAP, f"the previous job {previous} has not ended", None
    if fire.job is None:
        return FireOutcome.FAILED, fire.refusal, None
    return FireOutcome.FIRED, None, replace(fire.job, local_id=tick_local_id(fire.schedule, fire.scheduled_at))


def _blocker(connection: sqlite3.Connection, fire: Fire, row: sqlite3.Row) -> str | None:
    """Return the previous job if it makes the tick skip."""
    if not fire.check_overlap or row["overlap"] != "skip" or row["last_job_key"] is None:
        return None
    job = connection.execute(SQL["previous_job"], {"key": row["last_job_key"]}).fetchone()
    if job is None or job["state"] not in OUTSTANDING:
        return None
    return job_id(job["binding"], job["shard"], job["local_id"])


def _fire_manually(connection: sqlite3.Connection, moment: Moment, fire: Fire, row: sqlite3.Row) -> FireRecord:
    _refuse_held_lease(connection, moment, fire, row)
    if _asks(fire):
        return _unwritten(fire, moment, FireOutcome.STALE, "nothing keeps it from firing")
    if fire.job is None:
        values = {"app": fire.app, "name": fire.schedule, "error": fire.refusal, "now": moment.now}
        connection.execute(SQL["manual_error"], values)
        outcome, public = FireOutcome.FAILED, None
    else:
        found = connection.execute(SQL["next_manual"], {"app": fire.app, "name": fire.schedule}).fetchall()
        local_id = manual_local_id(fire.schedule, fire.scheduled_at, found[0]["manual_sequence"])
        enqueued, _ = insert_job(connection, replace(fire.job, local_id=local_id), moment.now)
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


def _line_about(connection: sqlite3.Connection, fire: Fire) -> FireRecord | None:
    """Return the line of the ledger that accounts for the tick's time."""
    values = {"app": fire.app, "schedule": fire.schedule, "planned_at": fire.scheduled_at}
    row = connection.execute(SQL["recorded"], values).fetchone()
    return None if row is None or row["planned_last_at"] < fire.scheduled_at else fire_record(row)


def _duplicate(line: FireRecord) -> FireRecord:
    return replace(line, outcome=FireOutcome.DUPLICATE, reason=f"this tick was settled already ({line.outcome})")


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
