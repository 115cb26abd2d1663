"""What people ask about jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kizami.core.errors import InvalidInputError
from kizami.core.names import split_job_id
from kizami.core.states import JobState
from kizami.store.protocol import Attempt, Job, JobFilter, JobPage, Outcome
from kizami.store.rooms.job_rows import job
from kizami.store.rooms.job_search import cursor_of, find_keys
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Transaction


SQL: Final = load("jobs")
PAGE_MAX: Final = 200


def get(transaction: Transaction, app: str, wanted: str) -> Job | None:
    """Return a job with its attempt log."""
    binding, shard, local_id = split_job_id(wanted)
    identity = {"app": app, "binding": binding, "shard": shard, "local_id": local_id}
    row = transaction.execute(SQL["by_identity"], identity).fetchone()
    if row is None:
        return None
    lines = transaction.execute(SQL["attempts"], {"key": row["key"]})
    return job(row, tuple(Attempt(line[0], Outcome(line[1]), *line[2:]) for line in lines))


def page(transaction: Transaction, wanted: JobFilter) -> JobPage:
    """Return a page of jobs; the cursor is the place of the last one shown, so pages stay put under writes."""
    if not 1 <= wanted.limit <= PAGE_MAX:
        raise InvalidInputError(f"limit is {wanted.limit}.", remedy=f"Give 1 to {PAGE_MAX}.", path="limit")
    found = find_keys(transaction, replace(wanted, limit=wanted.limit + 1))
    shown = found[: wanted.limit]
    rows = transaction.execute(SQL["by_keys"], {"keys": json.dumps([key for _, key in shown])})
    more = cursor_of(wanted, shown[-1]) if len(found) > wanted.limit else None
    return JobPage(tuple(job(row) for row in rows), more)


def count_by_state(transaction: Transaction, app: str) -> dict[str, dict[JobState, int]]:
    """Return, per binding, how many jobs are in each state."""
    counts: dict[str, dict[JobState, int]] = {}
    for binding, state, count in transaction.execute(SQL["counts"], {"app": app}):
        counts.setdefault(binding, {})[JobState(state)] = count
    return counts
