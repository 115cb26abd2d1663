"""Recording what became of a claimed job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.names import job_id
from kizami.core.states import Actor, JobState, require_move
from kizami.store.protocol import Outcome
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol import Report
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("jobs")


def record(transaction: Transaction, moment: Moment, report: Report) -> bool:
    """Move the job where the report says; False when its claim number is no longer current."""
    row = transaction.execute(SQL["held"], {"key": report.key, "claim": report.claim}).fetchone()
    if row is None or row["worker_id"] is None:
        return _landed_before(transaction, report)
    public = job_id(row["binding"], row["shard"], row["local_id"])
    require_move(public, JobState(row["state"]), report.state, Actor.PERFORMER)
    if report.state is JobState.SCHEDULED:
        _again(transaction, moment, row, report)
    else:
        _end(transaction, moment, report)
    if _wants_attempt_row(row, report):
        log_attempt(transaction, row, report)
    if report.skipped_by_lease and row["schedule"] is not None and not row["manual"]:
        _skip_by_lease(transaction, moment, row)
    return True


def log_attempt(transaction: Transaction, row: Row, report: Report) -> None:
    """Add a line to the attempt log; the last 20 are kept."""
    values = {
        "key": row["key"],
        "attempt": row["attempt"],
        "claim": row["claim"],
        "outcome": str(report.outcome),
        "error": report.error,
        "worker_id": row["worker_id"],
        "started_at": report.started_at,
        "ended_at": report.ended_at,
    }
    transaction.execute(SQL["log_attempt"], values)
    transaction.execute(SQL["trim_attempts"], {"key": row["key"]})


def _landed_before(transaction: Transaction, report: Report) -> bool:
    """Tell whether this very report is what ended the claim: its answer may have been lost."""
    values: dict[str, Any] = {
        "key": report.key,
        "claim": report.claim,
        "state": str(report.state),
        "outcome": str(report.outcome),
        "result": report.result,
        "started_at": report.started_at,
        "ended_at": report.ended_at,
    }
    return transaction.execute(SQL["landed_already"], values).fetchone() is not None


def _wants_attempt_row(row: Row, report: Report) -> bool:
    first_try_success = report.outcome is Outcome.COMPLETED and row["claim"] == 1
    return not first_try_success


def _end(transaction: Transaction, moment: Moment, report: Report) -> None:
    values: dict[str, Any] = {
        "key": report.key,
        "claim": report.claim,
        "state": str(report.state),
        "now": moment.now,
        "result": report.result,
        "result_note": report.result_note,
        "error": report.error,
        "progress": 1.0 if report.state is JobState.COMPLETED else None,
    }
    transaction.execute(SQL["end"], values)


def _again(transaction: Transaction, moment: Moment, row: Row, report: Report) -> None:
    snoozed = report.outcome is Outcome.SNOOZED
    values: dict[str, Any] = {
        "key": report.key,
        "claim": report.claim,
        "now": moment.now,
        "due_at": moment.now + report.delay_ms,
        "attempt_back": 0 if report.uses_attempt else 1,
        "retry": 1 if report.uses_attempt else 0,
        "snoozes": row["snoozes"] + 1 if snoozed else 0,
        "error": report.error,
    }
    transaction.execute(SQL["again"], values)


def _skip_by_lease(transaction: Transaction, moment: Moment, row: Row) -> None:
    values = {
        "app": row["app"],
        "schedule": row["schedule"],
        "scheduled_at": row["scheduled_at"],
        "now": moment.now,
        "reason": f"the lease {row['lease']} was held by another run",
    }
    if transaction.execute(SQL["skip_fire_by_lease"], values).rowcount:
        transaction.execute(SQL["count_lease_skip"], values)
