"""Between job rows and the records of the protocol."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kizami.core.backoff import Backoff
from kizami.core.names import job_id
from kizami.core.options import Guarantee, JobOptions
from kizami.core.states import JobState
from kizami.store.protocol import ClaimedJob, Job, Origin
from kizami.store.rooms.job_insert import KEY_BITS

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.store.protocol import Attempt
    from kizami.store.transaction import Row

_DEFAULT_BACKOFF = Backoff()


class ShardName(NamedTuple):
    """What a shard contributes to the jobs in it."""

    app: str
    binding: str
    prefix: str


def shard_name(shard: Row) -> ShardName:
    """Return the name of a shard's row."""
    return ShardName(shard["app"], shard["binding"], job_id(shard["binding"], shard["shard"], ""))


def claimed_job(row: tuple[Any, ...], shard: ShardName, grace_ms: int) -> ClaimedJob:
    """Return what a worker gets of a row that the statement `claim` returned."""
    (key, claim, _, local_id, payload, attempt, allowed, retries, snoozes, priority, max_attempts, *rest) = row
    (backoff, timeout_ms, guarantee, concurrency_key, unique_key, partition_key, *origin) = rest
    keys = (concurrency_key, unique_key, partition_key)
    return ClaimedJob(
        key,
        claim,
        shard.app,
        shard.prefix + local_id,
        shard.binding,
        payload,
        attempt,
        allowed,
        retries,
        snoozes,
        _options(priority, max_attempts, backoff, timeout_ms, guarantee, *keys),
        None if origin[0] is None else _origin(*origin),
        key >> KEY_BITS,
        grace_ms,
    )


def created_at(key: int) -> EpochMs:
    """Return when a job was created: its key tells."""
    return key >> KEY_BITS


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
        created_at=created_at(row["key"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        progress=row["progress"],
        result=row["result"],
        result_note=row["result_note"],
        error=row["error"],
        worker_id=row["worker_id"],
        origin=_origin(row["schedule"], row["scheduled_at"], row["manual"], row["lease"]),
        attempts=attempts,
        concurrency_key=row["concurrency_key"],
        unique_key=row["unique_key"],
        partition_key=row["partition_key"],
    )


@lru_cache(maxsize=1_024)
def _options(
    priority: int,
    max_attempts: int,
    backoff: str | None,
    timeout_ms: int,
    guarantee: str,
    concurrency_key: str | None,
    unique_key: str | None,
    partition_key: str | None,
) -> JobOptions:
    """Return the options of a claimed job; most jobs of a binding share theirs."""
    return JobOptions(
        priority,
        max_attempts,
        _backoff(backoff),
        timeout_ms,
        Guarantee(guarantee),
        concurrency_key,
        unique_key,
        partition_key=partition_key,
    )


def _backoff(text: str | None) -> Backoff:
    return _DEFAULT_BACKOFF if text is None else Backoff.from_stored(json.loads(text))


def _origin(schedule: str | None, scheduled_at: int, manual: int, lease: str | None) -> Origin | None:
    return None if schedule is None else Origin(schedule, scheduled_at, manual=bool(manual), lease=lease)
