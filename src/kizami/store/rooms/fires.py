"""Settling ticks: whatever becomes of one, its ledger row, its job and the new plan are one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import InvalidInputError, LeaseHeldError, NotFoundError
from kizami.core.names import job_id, manual_local_id, tick_local_id
from kizami.core.results import shorten_error
from kizami.core.states import OUTSTANDING
from kizami.store.protocol import Fire, FireOutcome, FireRecord, TickKind
from kizami.store.rooms import plans
from kizami.store.rooms.job_insert import home_of, insert_job
from kizami.store.rooms.schedule_rows import fire_record, timing_of
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.protocol import NewJob
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("schedules")


def settle_all(transaction: Transaction, moment: Moment, wanted: Sequence[Fire]) -> tuple[FireRecord, ...]:
    """Act on ticks, their schedules in the order of their names: two that settle the same ones don't lock crosswise."""
    in_order = sorted(range(len(wanted)), key=lambda place: (wanted[place].app, wanted[place].schedule))
    records = {place: settle(transaction, moment, wanted[place]) for place in in_order}
    return tuple(records[place] for place in range(len(wanted)))


def settle(transaction: Transaction, moment: Moment, fire: Fire) -> FireRecord:
    """Act on one tick; STALE, SUPERSEDED and DUPLICATE answers have written nothing (FireRecord says more).

    Raises DefinitionError when the schedule's timing can't be read, unless it is fired by hand.
    """
    row = transaction.execute(SQL["held"], {"app": fire.app, "name": fire.schedule}).fetchone()
    if row is None:
        if fire.kind is TickKind.PLANNED:
            return _unwritten(fire, moment, FireOutcome.SUPERSEDED, "the schedule was removed")
        raise NotFoundError(
            f"There is no schedule {fire.schedule} in app {fire.app}.",
            remedy="`kizami schedules list MODULE:APP` lists them.",
            schedule=fire.schedule,
        )
    settled = _settled_before(transaction, moment, fire, row) if fire.kind is TickKind.EXTERNAL else None
    if settled is not None:
        return settled
    if row["version"] != fire.version:
        return _unwritten(fire, moment, FireOutcome.SUPERSEDED, f"version {row['version']} of it is in force")
    if fire.kind is TickKind.MANUAL:
        return _fire_manually(transaction, moment, fire, row)
    timing_of(row)
    return _not_to_settle(transaction, moment, fire, row) or _settle_tick(transaction, moment, fire, row)


def _not_to_settle(transaction: Transaction, moment: Moment, fire: Fire, row: Row) -> FireRecord | None:
    if fire.kind is TickKind.PLANNED and (
        row["planned_at"] != fire.scheduled_at or row["paused_at"] is not None or fire.scheduled_at > moment.now
    ):
        return _unwritten(fire, moment, FireOutcome.STALE, "it is not the plan any more")
    if _asks(fire) and row["paused_at"] is None and _blocker(transaction, fire, row) is None:
        return _unwritten(fire, moment, FireOutcome.STALE, "nothing keeps it from firing")
    return None


def _asks(fire: Fire) -> bool:
    """Tell whether the caller has made no job yet, because the tick may not want one."""
    return fire.job is None and fire.refusal is None


def _settled_before(transaction: Transaction, moment: Moment, fire: Fire, row: Row) -> FireRecord | None:
    """Return the answer to an external tick whose time is settled: delivered again, or overtaken by a later one."""
    line = _line_about(transaction, fire)
    if line is not None and line.kind is TickKind.PLANNED and line.outcome in (FireOutcome.MISSED, FireOutcome.PAUSED):
        reason = f"it was dropped before it was delivered ({line.outcome}: {line.reason})"
        return _unwritten(fire, moment, FireOutcome.OVERTAKEN, reason)
    if line is not None:
        return _duplicate(line)
    if fire.scheduled_at > (row["settled_at"] or 0):
        return None
    reason = "a later tick was settled before it was delivered"
    transaction.execute(
        SQL["record"], _record_values(fire, moment, FireOutcome.OVERTAKEN, reason, None, row["version"])
    )
    dropped = {"app": fire.app, "name": fire.schedule, "settled_at": fire.scheduled_at, "dropped": 1}
    local = {"settled_local": plans.settled_local(row, fire.scheduled_at)}
    transaction.execute(SQL["drop"], dropped | local)
    return _answer(fire, moment, FireOutcome.OVERTAKEN, reason, None, row["version"])


def _settle_tick(transaction: Transaction, moment: Moment, fire: Fire, row: Row) -> FireRecord:
    plan = plans.plan_after_tick(row, fire, moment)
    fire, shard = _placed(transaction, moment, fire)
    outcome, reason, job = _decide(transaction, fire, row)
    public = None if job is None else job_id(job.binding, shard, job.local_id)
    values = _record_values(fire, moment, outcome, reason, public, row["version"])
    if transaction.execute(SQL["record"], values).rowcount == 0:
        # The ledger has this tick already, whatever the plan says: move on without a second job.
        outcome, job = FireOutcome.DUPLICATE, None
    key = None if job is None else insert_job(transaction, moment, job)[1]
    plans.record_missed(transaction, moment, row, plan)
    settled_at = max(plan.dropped_last or 0, fire.scheduled_at)
    settled: dict[str, Any] = values | {
        "next_at": plan.next_at,
        "settled_at": settled_at,
        "settled_local": plans.settled_local(row, settled_at),
        "scheduled_at": fire.scheduled_at,
        "fired": int(outcome is FireOutcome.FIRED),
        "job_key": key,
        "skipped": int(outcome is FireOutcome.SKIPPED_OVERLAP),
        "missed": plan.dropped + int(outcome is FireOutcome.PAUSED),
        "error": fire.refusal if outcome is FireOutcome.FAILED else None,
    }
    transaction.execute(SQL["settle"], settled)
    if outcome is FireOutcome.DUPLICATE:
        return _answer(fire, moment, outcome, "this tick was settled already", None, row["version"])
    return _answer(fire, moment, outcome, reason, public, row["version"])


def _placed(transaction: Transaction, moment: Moment, fire: Fire) -> tuple[Fire, int]:
    """Return the fire and its job's shard; a job that its binding refuses settles the tick as failed."""
    if fire.job is None:
        return fire, 0
    try:
        return fire, home_of(transaction, moment, fire.job).shard_of(fire.job)
    except (NotFoundError, InvalidInputError) as error:
        return replace(fire, job=None, refusal=shorten_error(str(error))), 0


def _decide(transaction: Transaction, fire: Fire, row: Row) -> tuple[FireOutcome, str | None, NewJob | None]:
    if row["paused_at"] is not None:
        return FireOutcome.PAUSED, "paused", None
    previous = _blocker(transaction, fire, row)
    if previous is not None:
        return FireOutcome.SKIPPED_OVERLAP, f"the previous job {previous} has not ended", None
    if fire.job is None:
        return FireOutcome.FAILED, fire.refusal, None
    return FireOutcome.FIRED, None, replace(fire.job, local_id=tick_local_id(fire.schedule, fire.scheduled_at))


def _blocker(transaction: Transaction, fire: Fire, row: Row) -> str | None:
    """Return the previous job if it makes the tick skip."""
    if not fire.check_overlap or row["overlap"] != "skip" or row["last_job_key"] is None:
        return None
    job = transaction.execute(SQL["previous_job"], {"key": row["last_job_key"]}).fetchone()
    if job is None or job["state"] not in OUTSTANDING:
        return None
    return job_id(job["binding"], job["shard"], job["local_id"])


def _fire_manually(transaction: Transaction, moment: Moment, fire: Fire, row: Row) -> FireRecord:
    _refuse_held_lease(transaction, moment, fire, row)
    if _asks(fire):
        return _unwritten(fire, moment, FireOutcome.STALE, "nothing keeps it from firing")
    if fire.job is None:
        values = {"app": fire.app, "name": fire.schedule, "error": fire.refusal, "now": moment.now}
        transaction.execute(SQL["manual_error"], values)
        outcome, public = FireOutcome.FAILED, None
    else:
        found = transaction.execute(SQL["next_manual"], {"app": fire.app, "name": fire.schedule}).fetchall()
        local_id = manual_local_id(fire.schedule, fire.scheduled_at, found[0]["manual_sequence"])
        enqueued, _ = insert_job(transaction, moment, replace(fire.job, local_id=local_id))
        outcome, public = FireOutcome.FIRED, enqueued.job_id
    values = _record_values(fire, moment, outcome, fire.refusal, public, row["version"])
    transaction.execute(SQL["record"], values)
    return _answer(fire, moment, outcome, fire.refusal, public, row["version"])


def _refuse_held_lease(transaction: Transaction, moment: Moment, fire: Fire, row: Row) -> None:
    if row["lease"] is None:
        return
    facts = {"app": fire.app, "lease": row["lease"], "now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id}
    held = transaction.execute(SQL["held_lease"], facts).fetchone()
    if held is None or held["silent_ms"] is None or fire.lease_is_stale(held["silent_ms"]):
        return
    raise LeaseHeldError(
        f"The lease {row['lease']} of schedule {fire.schedule} is held by {held['holder']}.",
        remedy="Trigger again when that run has ended.",
        holder=held["holder"],
        started_at=held["started_at"],
        heartbeat_at=held["heartbeat_at"],
    )


def _line_about(transaction: Transaction, fire: Fire) -> FireRecord | None:
    """Return the line of the ledger that accounts for the tick's time."""
    values = {"app": fire.app, "schedule": fire.schedule, "planned_at": fire.scheduled_at}
    row = transaction.execute(SQL["recorded"], values).fetchone()
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
