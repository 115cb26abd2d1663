"""What people ask about jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from kizami.core.errors import InvalidInputError
from kizami.core.names import split_job_id
from kizami.store.protocol import Attempt, Job, JobFilter, JobPage, Outcome
from kizami.store.rooms.job_rows import job
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Transaction


SQL: Final = load("jobs")
PAGE_MAX: Final = 200
CURSOR_DIGITS_MAX: Final = 18
LATEST_KEY: Final = 2**63 - 1


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
    """Return a page of jobs, newest first; the cursor is the last key shown, so pages stay put under writes."""
    if not 1 <= wanted.limit <= PAGE_MAX:
        raise InvalidInputError(f"limit is {wanted.limit}.", remedy=f"Give 1 to {PAGE_MAX}.", path="limit")
    facts = {
        "app": wanted.app,
        "binding": wanted.binding,
        "schedule": wanted.schedule,
        "states": json.dumps(wanted.states) if wanted.states else None,
        "before": LATEST_KEY if wanted.before is None else _cursor(wanted.before),
        "limit": wanted.limit + 1,
    }
    rows = transaction.execute(SQL["page"], facts).fetchall()
    shown = rows[: wanted.limit]
    more = str(shown[-1]["key"]) if len(rows) > wanted.limit else None
    return JobPage(tuple(job(row) for row in shown), more)


def _cursor(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= CURSOR_DIGITS_MAX:
        return int(text)
    raise InvalidInputError(
        f"{text!r} is not a cursor.", remedy="Use the next_cursor of an earlier page.", path="before"
    )
