"""Between job rows and the records of the protocol."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kizami.core.backoff import Backoff
from kizami.core.names import job_id
from kizami.core.options import Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import ClaimedJob, Job, NewJob, Origin

if TYPE_CHECKING:
    from kizami.store.protocol import Attempt
    from kizami.store.transaction import Row

AGING_MS = 60_000
"""Waiting this long is worth one priority point, so a job's place is one number that never changes."""

_DEFAULT_BACKOFF = Backoff()


def insert_values(job: NewJob, now: int) -> dict[str, Any]:
    """Return the parameters of the statement `insert`."""
    due_at = job.first_due.run_at_ms
    if due_at is None:
        due_at = now + (job.first_due.delay_ms or 0)
    options, origin = job.options, job.origin
    return {
        "app": job.app,
        "binding": job.binding,
        "shard": job.shard,
        "local_id": job.local_id,
        "pile": "ready" if due_at <= now else "waiting",
        "priority": options.priority,
        "order_key": max(due_at, now) - options.priority * AGING_MS,
        "due_at": due_at,
        "max_attempts": options.max_attempts,
        "guarantee": str(options.guarantee),
        "timeout_ms": options.timeout_ms,
        "backoff": None if options.backoff == _DEFAULT_BACKOFF else json.dumps(asdict(options.backoff)),
        "payload": job.payload,
        "schedule": origin.schedule if origin else None,
        "scheduled_at": origin.scheduled_at if origin else None,
        "manual": int(origin.manual) if origin else 0,
        "lease": origin.lease if origin else None,
        "now": now,
    }


def claimed_job(row: Row) -> ClaimedJob:
    """Return what a worker gets of a claimed row."""
    return ClaimedJob(
        key=row["key"],
        claim=row["claim"],
        app=row["app"],
        job_id=job_id(row["binding"], row["shard"], row["local_id"]),
        binding=row["binding"],
        payload=row["payload"],
        attempt=row["attempt"],
        attempts_allowed=row["attempts_allowed"],
        retries=row["retries"],
        snoozes=row["snoozes"],
        options=JobOptions(
            row["priority"],
            row["max_attempts"],
            _backoff(row["backoff"]),
            row["timeout_ms"],
            Guarantee(row["guarantee"]),
        ),
        origin=_origin(row),
        created_at=row["created_at"],
    )


def job(row: Row, attempts: tuple[Attempt, ...] = ()) -> Job:
    """Return a row as people see it."""
    return Job(
        job_id=job_id(row["binding"], row["shard"], row["local_id"]),
        app=row["app"],
        binding=row["binding"],
        state=JobState(row["state"]),
        payload=row["payload"],
        priority=row["priority"],
        attempt=row["attempt"],
        attempts_allowed=row["attempts_allowed"],
        guarantee=Guarantee(row["guarantee"]),
        timeout_ms=row["timeout_ms"],
        backoff=_backoff(row["backoff"]),
        due_at=row["due_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        progress=row["progress"],
        result=row["result"],
        result_note=row["result_note"],
        error=row["error"],
        worker_id=row["worker_id"],
        origin=_origin(row),
        attempts=attempts,
    )


def _backoff(text: str | None) -> Backoff:
    return _DEFAULT_BACKOFF if text is None else Backoff(**json.loads(text))


def _origin(row: Row) -> Origin | None:
    if row["schedule"] is None:
        return None
    return Origin(row["schedule"], row["scheduled_at"], manual=bool(row["manual"]), lease=row["lease"])
