"""Taking jobs from workers that are silent, unknown or known to be dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.names import job_id
from kizami.core.options import Guarantee
from kizami.core.states import JobState, require_move
from kizami.store.protocol import Outcome, Reaped
from kizami.store.rooms.job_blocked import unblock
from kizami.store.rooms.job_counts import READY, Tally
from kizami.store.rooms.job_reports import log_attempts
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Moment, Row, Transaction


SQL: Final = load("jobs")
WORKERS: Final = load("workers")


def silent(transaction: Transaction, moment: Moment, app: str, trusted_ms: int) -> list[tuple[Row, str]]:
    """Return the jobs that may be taken now, each with the reason."""
    known = {row["worker_id"] for row in transaction.execute(WORKERS["list"], {"app": app})}
    found: list[tuple[Row, str]] = []
    for row in transaction.execute(SQL["active_of_app"], {"app": app}).fetchall():
        if row["worker_id"] not in known:
            found.append((row, f"worker {row['worker_id']} is not registered any more"))
        elif row["boot_id"] != moment.boot_id:
            found.append((row, f"the machine of worker {row['worker_id']} has been restarted"))
        elif _is_silent(row, trusted_ms):
            found.append((row, f"worker {row['worker_id']} was silent for longer than timeout + grace"))
    return found


def take_silent(transaction: Transaction, moment: Moment, app: str, trusted_ms: int) -> tuple[Reaped, ...]:
    """Take them: at-most-once to STALLED, at-least-once to SCHEDULED or, when exhausted, FAILED."""
    return _take_all(transaction, moment, silent(transaction, moment, app, trusted_ms))


def take_of_worker(transaction: Transaction, moment: Moment, app: str, worker_id: str) -> tuple[Reaped, ...]:
    """Take every job of a worker whose process is known to have ended."""
    reason = f"the process of worker {worker_id} has ended"
    rows = transaction.execute(SQL["active_of_app"], {"app": app}).fetchall()
    return _take_all(transaction, moment, [(row, reason) for row in rows if row["worker_id"] == worker_id])


def _take_all(transaction: Transaction, moment: Moment, rows: list[tuple[Row, str]]) -> tuple[Reaped, ...]:
    tally, freed = Tally(), []
    taken: list[Reaped] = []
    for row, reason in rows:
        one = _take(transaction, moment, tally, row, reason)
        if one is None:
            continue  # its worker was heard of in the meantime
        taken.append(one)
        if row["concurrency_key"] is not None:
            freed.append((row["shard_key"], row["concurrency_key"]))
    unblock(transaction, tally, freed)
    tally.write(transaction)
    return tuple(taken)


def _take(transaction: Transaction, moment: Moment, tally: Tally, row: Row, reason: str) -> Reaped | None:
    """Take one job; its old claim number is worth nothing from here on.

    None: its worker has reported it or given a sign of life since the row was read.
    """
    current, target = JobState(row["state"]), _target(row)
    public = job_id(row["binding"], row["shard"], row["local_id"])
    require_move(public, current, target)
    again = target is JobState.SCHEDULED
    error = f"unconfirmed: {reason}"
    facts = {
        "key": row["key"],
        "claim": row["claim"],
        "before": row["state"],
        "alive_until": row["alive_until"],
        "state": str(target),
        "pile": "ready" if again else None,
        "retry": 1 if again else 0,
        "error": error,
        "ended_at": None if again else moment.now,
    }
    if transaction.execute(SQL["take"], facts).rowcount != 1:
        return None
    outcome = Outcome.STALLED if target is JobState.STALLED else Outcome.LOST
    line = (row["key"], row["attempt"], row["claim"], outcome.value, error, row["worker_id"], row["started_at"])
    log_attempts(transaction, [(*line, moment.now)])
    tally.move(row["shard_key"], (row["state"], ""), READY if again else (str(target), ""))
    return Reaped(public, target, row["worker_id"], reason)


def _target(row: Row) -> JobState:
    if row["guarantee"] == Guarantee.AT_MOST_ONCE:
        return JobState.STALLED
    return JobState.SCHEDULED if row["attempt"] < row["attempts_allowed"] else JobState.FAILED


def _is_silent(row: Row, trusted_ms: int) -> bool:
    watched_long_enough = trusted_ms >= row["timeout_ms"] + row["grace_ms"]
    return watched_long_enough and int(row["silent_ms"]) > 0
