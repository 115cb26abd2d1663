"""What people ask about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import InvalidInputError
from kizami.core.names import split_job_id
from kizami.store.protocol import Attempt, Job, JobFilter, JobPage, Outcome
from kizami.store.sqlite.job_rows import job
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

SQL: Final = load("jobs")
PAGE_MAX: Final = 200
CURSOR_DIGITS_MAX: Final = 18


def get(connection: sqlite3.Connection, app: str, wanted: str) -> Job | None:
    """Return a job with its attempt log."""
    binding, shard, local_id = split_job_id(wanted)
    identity = {"app": app, "binding": binding, "shard": shard, "local_id": local_id}
    row = connection.execute(SQL["by_identity"], identity).fetchone()
    if row is None:
        return None
    lines = connection.execute(SQL["attempts"], {"key": row["key"]})
    return job(row, tuple(Attempt(line[0], Outcome(line[1]), *line[2:]) for line in lines))


def page(connection: sqlite3.Connection, wanted: JobFilter) -> JobPage:
    """Return a page of jobs, newest first; the cursor is the last key shown, so pages stay put under writes."""
    if not 1 <= wanted.limit <= PAGE_MAX:
        raise InvalidInputError(f"limit is {wanted.limit}.", remedy=f"Give 1 to {PAGE_MAX}.", path="limit")
    where: list[str] = ["app = ?"]
    values: list[Any] = [wanted.app]
    for column, value in (("binding", wanted.binding), ("schedule", wanted.schedule)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if wanted.states:
        where.append(f"state IN ({', '.join('?' * len(wanted.states))})")
        values += [str(state) for state in wanted.states]
    if wanted.before is not None:
        where.append("key < ?")
        values.append(_cursor(wanted.before))
    sql = f"SELECT * FROM kizami_jobs WHERE {' AND '.join(where)} ORDER BY key DESC LIMIT ?"  # noqa: S608 - only column names above
    rows = connection.execute(sql, [*values, wanted.limit + 1]).fetchall()
    shown = rows[: wanted.limit]
    more = str(shown[-1]["key"]) if len(rows) > wanted.limit else None
    return JobPage(tuple(job(row) for row in shown), more)


def _cursor(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= CURSOR_DIGITS_MAX:
        return int(text)
    raise InvalidInputError(
        f"{text!r} is not a cursor.", remedy="Use the next_cursor of an earlier page.", path="cursor"
    )
