"""Durable jobs on SQLite: enqueue, claim, start, report, signs of life, and what operators do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import NotFoundError
from kizami.core.names import job_id, split_job_id
from kizami.core.states import Actor, JobState, require_move
from kizami.store.protocol import Enqueued, Horizon
from kizami.store.sqlite import job_queries, job_reports, job_taking, workers
from kizami.store.sqlite.job_rows import claimed_job, insert_values
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from kizami.store.protocol import (
        Claim,
        ClaimedJob,
        Heartbeat,
        Job,
        JobFilter,
        JobPage,
        NewJob,
        Reaped,
        Report,
        Vouch,
    )
    from kizami.store.sqlite.database import Database, Moment

SQL: Final = load("jobs")
PROMOTE_MAX: Final = 1_000


def insert_job(connection: sqlite3.Connection, job: NewJob, now: int) -> tuple[Enqueued, int | None]:
    """Add a job inside the caller's transaction; the key is None when one of this identity was there already."""
    row = connection.execute(SQL["insert"], insert_values(job, now)).fetchone()
    public = job_id(job.binding, job.shard, job.local_id)
    return Enqueued(public, existing=row is None), None if row is None else row["key"]


class SqliteJobStore:
    """Operations on jobs, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in order, all or none."""
        answers = await self._database.write(
            lambda connection, moment: tuple(insert_job(connection, job, moment.now)[0] for job in jobs),
        )
        self._database.announce()
        return answers

    async def horizon(self, app: str, bindings: tuple[str, ...]) -> Horizon:
        """Tell whether anything can be claimed, and if not, when that changes by itself."""
        return await self._database.read(lambda connection, moment: _horizon(connection, moment, app, bindings))

    async def claim(self, claim: Claim) -> tuple[ClaimedJob, ...]:
        """Hand ready jobs to a worker, oldest effective priority first."""
        return await self._database.write(lambda connection, moment: _claim(connection, moment, claim))

    async def start(self, key: int, claim: int) -> bool:
        """Move an at-most-once job to RUNNING."""

        def operation(connection: sqlite3.Connection, moment: Moment) -> bool:
            values = {"key": key, "claim": claim, "now": moment.now}
            return connection.execute(SQL["start"], values).rowcount == 1

        return await self._database.write(operation)

    async def report(self, reports: Sequence[Report]) -> tuple[bool, ...]:
        """Record outcomes, each fenced by its claim number."""
        answers = await self._database.write(
            lambda connection, moment: tuple(job_reports.record(connection, moment, report) for report in reports),
        )
        if any(report.state is JobState.SCHEDULED for report in reports):
            self._database.announce()
        return answers

    async def heartbeat(self, heartbeats: Sequence[Heartbeat]) -> tuple[bool, ...]:
        """Record signs of life."""
        return await self._database.write(
            lambda connection, moment: tuple(
                _alive(connection, moment, beat.key, beat.claim, beat.alive_ms, beat.progress) for beat in heartbeats
            ),
        )

    def vouch_blocking(self, worker_id: str, vouches: Sequence[Vouch]) -> None:
        """Record a worker's sign of life and its jobs', from a thread."""

        def operation(connection: sqlite3.Connection, moment: Moment) -> None:
            workers.mark_seen(connection, moment, worker_id)
            for vouch in vouches:
                _alive(connection, moment, vouch.key, vouch.claim, vouch.alive_ms, None)

        self._database.write_blocking(operation)

    async def reap(self, app: str, trusted_ms: int, grace_ms: int) -> tuple[Reaped, ...]:
        """Take jobs from workers that fell silent or aren't registered any more."""
        silent = await self._database.read(
            lambda connection, moment: job_taking.silent_keys(connection, moment, app, trusted_ms, grace_ms),
        )
        if not silent:
            return ()
        taken = await self._database.write(
            lambda connection, moment: job_taking.take_silent(connection, moment, app, trusted_ms, grace_ms),
        )
        self._database.announce()
        return taken

    async def retry(self, app: str, wanted: str) -> None:
        """Schedule a FAILED or STALLED job again."""
        await self._database.write(lambda connection, moment: _operate(connection, moment, app, wanted, "retry"))
        self._database.announce()

    async def cancel(self, app: str, wanted: str) -> None:
        """Cancel a SCHEDULED job."""
        await self._database.write(lambda connection, moment: _operate(connection, moment, app, wanted, "cancel"))

    async def get(self, app: str, wanted: str) -> Job | None:
        """Return a job with its attempt log."""
        return await self._database.read(lambda connection, _: job_queries.get(connection, app, wanted))

    async def list(self, wanted: JobFilter) -> JobPage:
        """Return a page of jobs, newest first."""
        return await self._database.read(lambda connection, _: job_queries.page(connection, wanted))

    async def count_by_state(self, app: str) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state."""

        def operation(connection: sqlite3.Connection, _: Moment) -> dict[str, dict[JobState, int]]:
            counts: dict[str, dict[JobState, int]] = {}
            for binding, state, count in connection.execute(SQL["count_by_state"], {"app": app}):
                counts.setdefault(binding, {})[JobState(state)] = count
            return counts

        return await self._database.read(operation)

    async def purge(self, app: str, ended_for_ms: int, limit: int) -> int:
        """Remove ended jobs past their retention."""
        return await self._database.write(
            lambda connection, moment: (
                connection.execute(
                    SQL["purge"],
                    {"app": app, "before": moment.now - ended_for_ms, "limit": limit},
                ).rowcount
            ),
        )


def _horizon(connection: sqlite3.Connection, moment: Moment, app: str, bindings: tuple[str, ...]) -> Horizon:
    row = connection.execute(SQL["next_due"], {"app": app}).fetchone()
    next_due = row["due_at"] if row else None
    wanted = frozenset(bindings)
    ready = any(binding in wanted for binding, _ in _ready_shards(connection, app))
    return Horizon(moment.now, ready=ready or (next_due is not None and next_due <= moment.now), next_due_at=next_due)


def _ready_shards(connection: sqlite3.Connection, app: str) -> Iterator[tuple[str, int]]:
    values = {"app": app, "binding": "", "shard": 0}
    while (row := connection.execute(SQL["next_ready_shard"], values).fetchone()) is not None:
        values |= {"binding": row["binding"], "shard": row["shard"]}
        yield row["binding"], row["shard"]


def _claim(connection: sqlite3.Connection, moment: Moment, claim: Claim) -> tuple[ClaimedJob, ...]:
    connection.execute(SQL["promote"], {"app": claim.app, "now": moment.now, "limit": PROMOTE_MAX})
    keys = _first_ready(connection, claim)
    values: dict[str, Any] = {
        "keys": json.dumps(keys),
        "worker_id": claim.worker_id,
        "boot_id": moment.boot_id,
        "boot": moment.boot,
        "now": moment.now,
        "grace_ms": claim.grace_ms,
    }
    rows = {row["key"]: row for row in connection.execute(SQL["claim"], values)}
    return tuple(claimed_job(rows[key]) for key in keys)


def _first_ready(connection: sqlite3.Connection, claim: Claim) -> list[int]:
    """Return the keys of the ready jobs that go first, over all bindings and shards together."""
    wanted = frozenset(claim.bindings)
    candidates: list[tuple[int, int]] = []
    for binding, shard in _ready_shards(connection, claim.app):
        if binding in wanted:
            values = {"app": claim.app, "binding": binding, "shard": shard, "limit": claim.limit}
            rows = connection.execute(SQL["ready_of_shard"], values)
            candidates += [(row["order_key"], row["key"]) for row in rows]
    return [key for _, key in sorted(candidates)[: claim.limit]]


def _alive(
    connection: sqlite3.Connection, moment: Moment, key: int, claim: int, alive_ms: int, progress: float | None
) -> bool:
    values = {
        "key": key,
        "claim": claim,
        "boot": moment.boot,
        "boot_id": moment.boot_id,
        "alive_ms": alive_ms,
        "progress": progress,
    }
    return connection.execute(SQL["alive"], values).rowcount == 1


def _operate(connection: sqlite3.Connection, moment: Moment, app: str, wanted: str, statement: str) -> None:
    binding, shard, local_id = split_job_id(wanted)
    identity = {"app": app, "binding": binding, "shard": shard, "local_id": local_id}
    row = connection.execute(SQL["by_identity"], identity).fetchone()
    if row is None:
        raise NotFoundError(
            f"There is no job {wanted}.", remedy="List the jobs; one that ended long ago is removed.", job_id=wanted
        )
    target = JobState.SCHEDULED if statement == "retry" else JobState.CANCELLED
    require_move(wanted, JobState(row["state"]), target, Actor.OPERATOR)
    connection.execute(SQL[statement], {"key": row["key"], "now": moment.now})
