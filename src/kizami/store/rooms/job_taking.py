"""Taking jobs from workers that are silent, unknown or known to be dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.names import job_id
from kizami.core.options import Guarantee
from kizami.core.states import JobState, require_move
from kizami.store.protocol import Outcome, Reaped, Report
from kizami.store.rooms.job_reports import log_attempt
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Moment, Row, Transaction


SQL: Final = load("jobs")
_WORKERS: Final = load("workers")


def silent_keys(
    transaction: Transaction, moment: Moment, app: str, trusted_ms: int, grace_ms: int
) -> list[tuple[int, str]]:
    """Return (key, reason) of the jobs that may be taken now."""
    known = {row["worker_id"] for row in transaction.execute(_WORKERS["list"], {"app": app})}
    found: list[tuple[int, str]] = []
    for row in transaction.execute(SQL["active"], {"app": app}):
        if row["worker_id"] not in known:
            found.append((row["key"], f"worker {row['worker_id']} is not registered any more"))
        elif row["boot_id"] != moment.boot_id:
            found.append((row["key"], f"the machine of worker {row['worker_id']} has been restarted"))
        elif _is_silent(row, moment, trusted_ms, grace_ms):
            found.append((row["key"], f"worker {row['worker_id']} was silent for longer than timeout + grace"))
    return found


def take_silent(
    transaction: Transaction, moment: Moment, app: str, trusted_ms: int, grace_ms: int
) -> tuple[Reaped, ...]:
    """Take them: at-most-once to STALLED, at-least-once to SCHEDULED or, when exhausted, FAILED."""
    reasons = dict(silent_keys(transaction, moment, app, trusted_ms, grace_ms))
    rows = [row for row in transaction.execute(SQL["active"], {"app": app}).fetchall() if row["key"] in reasons]
    return tuple(take(transaction, moment, row, reasons[row["key"]]) for row in rows)


def take_of_worker(transaction: Transaction, moment: Moment, app: str, worker_id: str) -> tuple[Reaped, ...]:
    """Take every job of a worker whose process is known to have ended."""
    rows = transaction.execute(SQL["active_of_worker"], {"app": app, "worker_id": worker_id}).fetchall()
    return tuple(take(transaction, moment, row, f"the process of worker {worker_id} has ended") for row in rows)


def take(transaction: Transaction, moment: Moment, row: Row, reason: str) -> Reaped:
    """Take one job; its old claim number is worth nothing from here on."""
    current, target = JobState(row["state"]), _target(row)
    public = job_id(row["binding"], row["shard"], row["local_id"])
    require_move(public, current, target)
    again = target is JobState.SCHEDULED
    error = f"unconfirmed: {reason}"
    outcome = Outcome.STALLED if target is JobState.STALLED else Outcome.LOST
    report = Report(
        row["key"], row["claim"], target, outcome, error=error, started_at=row["started_at"], ended_at=moment.now
    )
    log_attempt(transaction, row, report)
    values = {
        "key": row["key"],
        "claim": row["claim"],
        "state": str(target),
        "pile": "ready" if again else None,
        "now": moment.now,
        "retry": 1 if again else 0,
        "error": error,
        "ended_at": None if again else moment.now,
    }
    transaction.execute(SQL["take"], values)
    return Reaped(public, target, row["worker_id"], reason)


def _target(row: Row) -> JobState:
    if row["guarantee"] == Guarantee.AT_MOST_ONCE:
        return JobState.STALLED
    return JobState.SCHEDULED if row["attempt"] < row["attempts_allowed"] else JobState.FAILED


def _is_silent(row: Row, moment: Moment, trusted_ms: int, grace_ms: int) -> bool:
    watched_long_enough = trusted_ms >= row["timeout_ms"] + grace_ms
    return watched_long_enough and int(row["alive_until_boot"]) < moment.boot
