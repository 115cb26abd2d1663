"""What operators do to jobs: retry, cancel, reschedule, one by one or many."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kizami.core.errors import GoneError, InvalidInputError, KizamiError, NotFoundError
from kizami.core.names import job_id, split_job_id, time_of_local_id
from kizami.core.states import ACTIVE, Actor, JobState, require_move
from kizami.store.protocol import BulkAnswer, BulkOperation, Refused
from kizami.store.rooms.binding_rows import policy_of
from kizami.store.rooms.job_blocked import unblock
from kizami.store.rooms.job_counts import PILES, READY, Tally, place_of
from kizami.store.rooms.job_insert import DUE_MAX
from kizami.store.rooms.job_search import count_matches, find_keys
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.core.options import FirstDue
    from kizami.store.protocol import Bulk, JobFilter
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("jobs")
BULK_MAX: Final = 200
REMAINING_MAX: Final = 10_000
_ACCEPTED: Final = {
    BulkOperation.RETRY: (JobState.FAILED, JobState.STALLED),
    BulkOperation.CANCEL: (JobState.SCHEDULED,),
}


def find(transaction: Transaction, app: str, wanted: str) -> Row:
    """Return a job's row. Raises NotFoundError, or GoneError where its id tells that retention has passed it."""
    binding, shard, local_id = split_job_id(wanted)
    identity = {"app": app, "binding": binding, "shard": shard, "local_id": local_id}
    row: Row | None = transaction.execute(SQL["by_identity"], identity).fetchone()
    if row is not None and row["state"] not in ACTIVE:
        row = transaction.execute(SQL["held_identity"], identity).fetchone()
    if row is not None:
        return row
    made_at = time_of_local_id(local_id)
    home = transaction.execute(SQL["removed_until"], identity).fetchone()
    if home is not None and made_at is not None and made_at <= home["removed_until_at"]:
        raise GoneError(
            f"Job {wanted} is gone: jobs of its time have been removed.",
            remedy="Its binding's retention says how long ended jobs are kept.",
            job_id=wanted,
        )
    raise NotFoundError(
        f"There is no job {wanted}.", remedy="List the jobs; one that ended long ago is removed.", job_id=wanted
    )


def retry(transaction: Transaction, moment: Moment, row: Row) -> None:
    """Schedule a FAILED or STALLED job again."""
    _require(row, JobState.SCHEDULED)
    rank, order_key = policy_of(row).place(row["priority"], row["first_due_at"])
    values = {"key": row["key"], "now": moment.now, "rank": rank, "order_key": order_key}
    transaction.execute(SQL["retry"], values)
    _count(transaction, row, READY)


def cancel(transaction: Transaction, moment: Moment, row: Row) -> None:
    """Cancel a SCHEDULED job."""
    _require(row, JobState.CANCELLED)
    transaction.execute(SQL["cancel"], {"key": row["key"], "now": moment.now})
    _count(transaction, row, (JobState.CANCELLED.value, ""))


def reschedule(transaction: Transaction, moment: Moment, row: Row, first_due: FirstDue) -> None:
    """Move a SCHEDULED job to another due time."""
    if row["state"] != JobState.SCHEDULED:
        _require(row, JobState.CANCELLED)  # what can be cancelled can be rescheduled: it says which state it is in
    due_at = moment.now + (first_due.delay_ms or 0) if first_due.run_at_ms is None else first_due.run_at_ms
    if due_at > DUE_MAX:
        raise InvalidInputError(
            f"The due time {due_at} ms is out of range.", remedy="Give an earlier one.", path="run_at"
        )
    first_due_at = max(due_at, moment.now)
    rank, order_key = policy_of(row).place(row["priority"], first_due_at)
    pile = "ready" if due_at <= moment.now else "waiting"
    values = {"key": row["key"], "pile": pile, "due_at": due_at, "first_due_at": first_due_at}
    transaction.execute(SQL["reschedule"], values | {"rank": rank, "order_key": order_key})
    _count(transaction, row, PILES[pile])


def bulk(transaction: Transaction, moment: Moment, wanted: Bulk) -> BulkAnswer:
    """Retry or cancel many jobs, each by itself."""
    _check(wanted)
    if wanted.wanted is None:
        done, refused = _each(transaction, moment, wanted, wanted.job_ids)
        return BulkAnswer(done, refused)
    found = _matching(wanted, wanted.wanted)
    keys = find_keys(transaction, replace(found, limit=wanted.limit))
    rows = transaction.execute(SQL["by_keys"], {"keys": json.dumps([key for _, key in keys])}).fetchall()
    ids = tuple(job_id(row["binding"], row["shard"], row["local_id"]) for row in rows)
    done, refused = _each(transaction, moment, wanted, ids)
    remaining = count_matches(transaction, found, REMAINING_MAX + 1)
    return BulkAnswer(done, refused, min(remaining, REMAINING_MAX), remaining <= REMAINING_MAX)


def _check(wanted: Bulk) -> None:
    if bool(wanted.job_ids) == (wanted.wanted is not None):
        raise InvalidInputError("A bulk operation needs ids or a filter.", remedy="Give exactly one.", path="job_ids")
    if len(wanted.job_ids) > BULK_MAX or not 1 <= wanted.limit <= BULK_MAX:
        raise InvalidInputError(
            f"A bulk operation takes at most {BULK_MAX} jobs.", remedy="Repeat it while jobs remain.", path="limit"
        )


def _matching(wanted: Bulk, given: JobFilter) -> JobFilter:
    """Return the filter narrowed to the states that the operation accepts, oldest first."""
    accepted = _ACCEPTED[wanted.operation]
    states = tuple(state for state in accepted if not given.states or state in given.states)
    if not states:
        raise InvalidInputError(
            f"No job in {', '.join(given.states)} can be {wanted.operation}ed.".replace("retryed", "retried"),
            remedy=f"It takes {' and '.join(accepted)} jobs.",
            path="states",
        )
    return replace(given, app=wanted.app, states=states, before=None, oldest_first=True)


def _each(
    transaction: Transaction, moment: Moment, wanted: Bulk, ids: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[Refused, ...]]:
    operate = retry if wanted.operation is BulkOperation.RETRY else cancel
    done: list[str] = []
    refused: list[Refused] = []
    for one in ids:
        try:
            operate(transaction, moment, find(transaction, wanted.app, one))
        except KizamiError as error:
            refused.append(Refused(one, error.code, str(error)))
        else:
            done.append(one)
    return tuple(done), tuple(refused)


def _require(row: Row, target: JobState) -> None:
    public = job_id(row["binding"], row["shard"], row["local_id"])
    require_move(public, JobState(row["state"]), target, Actor.OPERATOR)


def _count(transaction: Transaction, row: Row, after: tuple[str, str]) -> None:
    """Count the move; a keyed job that left the ready pile may have been the one brought back for its key."""
    tally = Tally()
    tally.move(row["shard_key"], place_of(row), after)
    if row["concurrency_key"] is not None and row["pile"] == "ready" and after != READY:
        unblock(transaction, tally, [(row["shard_key"], row["concurrency_key"])])
    tally.write(transaction)
