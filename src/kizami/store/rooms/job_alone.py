"""Adding one job by one statement, where each way to the database is long: most calls add one, with nothing to look up.

It needs what is remembered of the job's binding. The statement does nothing when that is out of date; then, and when a
job needs more, it is added in the usual way, and what that finds of its binding is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.store.protocol import Enqueued
from kizami.store.rooms.job_insert import DUE_MAX, backoff_text
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol import NewJob
    from kizami.store.rooms.job_insert import Home
    from kizami.store.statements import Statement

SQL: Final = load("job_alone")
REMEMBERED_MAX: Final = 10_000
DELAY_MAX_MS: Final = DUE_MAX // 2
"""So far ahead a due time is surely before `DUE_MAX`, whatever the time is."""


class JobAlone:
    """What this process remembers of bindings; each step is one operation on a dict, so any thread may take it."""

    def __init__(self) -> None:
        self._homes: dict[tuple[str, str], Home] = {}

    def note(self, job: NewJob, home: Home) -> None:
        """Remember where jobs of a binding go."""
        if len(self._homes) >= REMEMBERED_MAX:
            self._homes.clear()
        self._homes[job.app, job.binding] = home

    def call(self, job: NewJob) -> tuple[Statement, dict[str, Any]] | None:
        """Return the statement that adds a job; None for one that needs more than that. Raises InvalidInputError."""
        home = self._homes.get((job.app, job.binding))
        options, first_due = job.options, job.first_due
        if home is None or job.origin is not None or options.unique_key is not None:
            return None
        if (first_due.delay_ms or 0) > DELAY_MAX_MS or (first_due.run_at_ms or 0) > DUE_MAX:
            return None
        rank, lead_ms = home.policy.rank_and_lead(options.priority)
        return SQL["insert_alone"], {
            "app": job.app,
            "name": job.binding,
            "stamp": home.stamp,
            "shard_key": home.shard_keys[home.shard_of(job)],
            "local_id": job.local_id,
            "priority": options.priority,
            "rank": rank,
            "lead_ms": lead_ms,
            "run_at_ms": first_due.run_at_ms,
            "delay_ms": first_due.delay_ms or 0,
            "concurrency_key": options.concurrency_key,
            "partition_key": options.partition_key,
            "max_attempts": options.max_attempts,
            "guarantee": options.guarantee.value,
            "timeout_ms": options.timeout_ms,
            "backoff": backoff_text(options) or None,
            "payload": job.payload,
        }

    def answer(self, job: NewJob, rows: list[Any]) -> Enqueued | None:
        """Return the answer to the caller, None when nothing was added."""
        if not rows:
            return None
        home = self._homes[job.app, job.binding]
        return Enqueued(home.prefixes[home.shard_of(job)] + job.local_id)

    def answer_after_loss(self, answer: Enqueued) -> Enqueued:
        """Return the usual way's answer for a job whose statement was sent before, with its end unheard.

        Ids are made anew for each call, so a job of that identity is this very one.
        """
        return Enqueued(answer.job_id)
