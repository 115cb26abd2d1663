"""Durable jobs: enqueue, claim, start, report, signs of life, and what operators do."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final

from kizami.core.states import JobState
from kizami.store.protocol.store import Topic
from kizami.store.rooms import (
    job_claims,
    job_insert,
    job_operations,
    job_queries,
    job_reports,
    job_sweep,
    job_taking,
    workers,
)
from kizami.store.rooms.job_alone import JobAlone
from kizami.store.rooms.job_counts import QUEUED, RUNNING, Tally
from kizami.store.rooms.job_memory import ClaimMemory
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.core.options import FirstDue
    from kizami.store.protocol import (
        Bulk,
        BulkAnswer,
        Claim,
        ClaimedJob,
        Enqueued,
        Heartbeat,
        Horizon,
        Job,
        JobFilter,
        JobPage,
        NewJob,
        Reaped,
        Report,
        Swept,
        Vouch,
    )
    from kizami.store.transaction import Database, Moment, Row, Transaction, Write

SQL: Final = load("jobs")


class JobRoom:
    """Operations on jobs, each one transaction; see `JobStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._memory = ClaimMemory()
        alone = JobAlone()
        self._add = database.gathered(partial(job_insert.insert_jobs, note=alone.note), job_insert.foresee, alone)

    async def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in order, all or none."""
        answers = await self._add(jobs)
        self._database.announce(Topic.JOBS)
        return answers

    async def enqueue_in(self, connection: object, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in the transaction of a caller's own connection."""
        return await self._database.join(connection, _adding(jobs))

    def enqueue_in_blocking(self, connection: object, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Add jobs in the transaction of a caller's own connection, from any thread."""
        return self._database.join_blocking(connection, _adding(jobs))

    async def horizon(self, app: str, bindings: tuple[str, ...]) -> Horizon:
        """Tell whether a claim is worth a try, and if not, when that changes by itself."""
        return await self._database.read(
            lambda transaction, moment: job_claims.horizon(transaction, moment, app, bindings),
        )

    async def claim(self, claim: Claim) -> tuple[ClaimedJob, ...]:
        """Hand ready jobs to a worker; in several transactions where much has to be promoted or passed over first."""
        while claim.limit > 0:
            taken = await self._database.share(
                lambda transaction, moment: job_claims.claim(transaction, moment, claim, self._memory),
                job_claims.foresee(claim),
            )
            if taken.jobs or not taken.again:
                return taken.jobs
        return ()

    async def start(self, key: int, claim: int) -> bool:
        """Move an at-most-once job to RUNNING."""

        def operation(transaction: Transaction, moment: Moment) -> bool:
            values = {"key": key, "claim": claim, "now": moment.now}
            moved = transaction.execute(SQL["start"], values).fetchall()
            tally = Tally()
            for (shard_key,) in moved:
                tally.move(shard_key, QUEUED, RUNNING)
            tally.write(transaction)
            return bool(moved)

        return await self._database.write(operation)

    async def report(self, reports: Sequence[Report]) -> tuple[bool, ...]:
        """Record outcomes, each fenced by its claim number."""
        answers = await self._recorded(reports)
        if any(report.state is JobState.SCHEDULED for report in reports):
            self._database.announce(Topic.JOBS)
        return answers

    async def _recorded(self, reports: Sequence[Report]) -> tuple[bool, ...]:
        homes = job_reports.first_tries(reports, self._memory)
        if homes:
            try:
                return await self._database.share(
                    lambda transaction, moment: job_reports.complete_first_tries(transaction, moment, reports, homes),
                )
            except job_reports.NotFirstTriesError:
                pass
        return await self._database.share(
            lambda transaction, moment: job_reports.record(transaction, moment, reports),
        )

    async def heartbeat(self, heartbeats: Sequence[Heartbeat]) -> tuple[bool, ...]:
        """Record signs of life."""
        beats = [(beat.key, beat.claim, beat.alive_ms, beat.progress) for beat in heartbeats]
        landed = await self._database.write(lambda transaction, _: _alive(transaction, beats))
        return tuple((beat.key, beat.claim) in landed for beat in heartbeats)

    def vouch_blocking(self, worker_id: str, vouches: Sequence[Vouch]) -> None:
        """Record a worker's sign of life and its jobs', from a thread."""
        beats = [(vouch.key, vouch.claim, vouch.alive_ms, None) for vouch in vouches]

        def operation(transaction: Transaction, _: Moment) -> None:
            workers.mark_seen(transaction, worker_id)
            _alive(transaction, beats)

        self._database.write_blocking(operation)

    async def reap(self, app: str, trusted_ms: int) -> tuple[Reaped, ...]:
        """Take jobs from workers that fell silent or aren't registered any more."""
        silent = await self._database.read(
            lambda transaction, moment: job_taking.silent(transaction, moment, app, trusted_ms),
        )
        if not silent:
            return ()
        taken = await self._database.write(
            lambda transaction, moment: job_taking.take_silent(transaction, moment, app, trusted_ms),
        )
        self._database.announce(Topic.JOBS)
        return taken

    async def retry(self, app: str, job_id: str) -> None:
        """Schedule a FAILED or STALLED job again."""
        await self._operate(app, job_id, job_operations.retry)

    async def cancel(self, app: str, job_id: str) -> None:
        """Cancel a SCHEDULED job."""
        await self._operate(app, job_id, job_operations.cancel)

    async def reschedule(self, app: str, job_id: str, first_due: FirstDue) -> None:
        """Move a SCHEDULED job to another due time."""

        def move(transaction: Transaction, moment: Moment, row: Row) -> None:
            job_operations.reschedule(transaction, moment, row, first_due)

        await self._operate(app, job_id, move)

    async def bulk(self, bulk: Bulk) -> BulkAnswer:
        """Retry or cancel many jobs in one transaction, each by itself."""
        answer = await self._database.write(
            lambda transaction, moment: job_operations.bulk(transaction, moment, bulk),
        )
        self._database.announce(Topic.JOBS)
        return answer

    async def get(self, app: str, job_id: str) -> Job | None:
        """Return a job with its attempt log."""
        return await self._database.look(lambda transaction, _: job_queries.get(transaction, app, job_id))

    async def list(self, wanted: JobFilter) -> JobPage:
        """Return a page of jobs."""
        return await self._database.look(lambda transaction, _: job_queries.page(transaction, wanted))

    async def count_by_state(self, app: str) -> dict[str, dict[JobState, int]]:
        """Return, per binding, how many jobs are in each state."""
        return await self._database.look(lambda transaction, _: job_queries.count_by_state(transaction, app))

    async def sweep(self, app: str, limit: int) -> Swept:
        """Remove ended jobs past their retention, and ended reservations."""
        return await self._database.write(lambda transaction, moment: job_sweep.sweep(transaction, moment, app, limit))

    async def _operate(self, app: str, job_id: str, operate: Callable[[Transaction, Moment, Row], None]) -> None:
        await self._database.write(
            lambda transaction, moment: operate(transaction, moment, job_operations.find(transaction, app, job_id)),
        )
        self._database.announce(Topic.JOBS)


def _adding(jobs: Sequence[NewJob]) -> Write[tuple[Enqueued, ...]]:
    return lambda transaction, moment: tuple(job_insert.insert_jobs(transaction, moment, jobs))


def _alive(transaction: Transaction, beats: Sequence[tuple[int, int, int, float | None]]) -> set[tuple[int, int]]:
    """Keep jobs alive; return the (key, claim) of those that still are this worker's."""
    if not beats:
        return set()
    landed = transaction.execute(SQL["alive"], {"beats": json.dumps(beats)})
    return {(row["key"], row["claim"]) for row in landed}
