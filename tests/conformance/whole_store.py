"""The whole store on a real file, in a world whose clocks the test moves."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kizami.core.options import FirstDue, JobOptions
from kizami.core.policy import Policy, Retention
from kizami.core.states import JobState
from kizami.runtime import Background, Clock, Entropy, ProcessIdentity
from kizami.store.postgres.place import place_of
from kizami.store.postgres.store import PostgresStore
from kizami.store.protocol import BindingDeclaration, Claim, ClaimedJob, Job, NewJob, Outcome, Report, Store, Worker
from kizami.store.sqlite.store import SqliteStore
from kizami.store.sqlite.transaction import SqliteTransaction
from kizami.store.transaction import Transaction
from tests.conformance.postgres_home import address_of, clock_of

APP, BINDING = "shop", "send"
START_MS = 1_780_000_000_000  # 2026-05-28T20:26:40Z
TIMEOUT_MS, GRACE_MS = 60_000, 30_000
SILENT_MS = TIMEOUT_MS + GRACE_MS
WIDE = Policy(concurrency=100_000)


class StillClock:
    """A wall and a boot clock that stand still until the test moves them; who sleeps, sleeps until cancelled."""

    def __init__(self, now: int = START_MS, boot: int = 1_000_000) -> None:
        self.now = now
        self.boot = boot
        self.shown_by: list[Callable[[int], None]] = []
        """What else shows this wall clock: a database."""

    def now_ms(self) -> int:
        return self.now

    def boot_ms(self) -> int:
        return self.boot

    async def sleep(self, seconds: float) -> None:
        del seconds
        await asyncio.Event().wait()

    def move(self, ms: int) -> None:
        """Let time pass."""
        self.boot += ms
        self.step(ms)

    def step(self, ms: int) -> None:
        """Set the wall clock forward or back, as people and time servers do."""
        self.now += ms
        for show in self.shown_by:
            show(self.now)


class NoChance:
    """No randomness."""

    def fraction(self) -> float:
        return 0.5

    def token(self, size: int = 16) -> str:
        return "0" * 2 * size


@dataclass
class StillWorld:
    """A runtime of which only the clocks and the identity matter to a store."""

    clock: Clock
    process: ProcessIdentity
    entropy: Entropy = field(default_factory=NoChance)

    def is_gone(self, process: ProcessIdentity) -> bool:
        return process != self.process

    def beat(self, name: str, every_seconds: float, action: Callable[[], None]) -> Background:
        raise AssertionError(name, every_seconds, action)


def process(boot_id: str = "boot-1", pid: int = 1) -> ProcessIdentity:
    return ProcessIdentity("host", boot_id, "namespace", pid, "1")


@asynccontextmanager
async def whole_store(
    folder: Path, clock: StillClock, boot_id: str = "boot-1", *, busy_ms: int = 5_000
) -> AsyncIterator[Store]:
    """Open the store of a folder; opening it a second time is a second process."""
    url = address_of(folder)
    if url is None:
        async with sqlite_store(folder, clock, boot_id, busy_ms=busy_ms) as store:
            yield store
        return
    with clock_of(url) as show:
        show(clock.now)
        clock.shown_by.append(show)
        postgres = PostgresStore(place_of(url))
        await postgres.open()
        try:
            yield postgres
        finally:
            await postgres.close()
            clock.shown_by.remove(show)


@asynccontextmanager
async def sqlite_store(
    folder: Path, clock: Clock, boot_id: str = "boot-1", *, busy_ms: int = 5_000
) -> AsyncIterator[SqliteStore]:
    """Open the SQLite file of a folder."""
    store = SqliteStore(str(folder / "kizami.db"), StillWorld(clock, process(boot_id)), busy_ms=busy_ms)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def raw(transaction: Transaction) -> sqlite3.Connection:
    """Return SQLite's own connection under a transaction."""
    assert isinstance(transaction, SqliteTransaction)
    return transaction.connection


async def employ(store: Store, *worker_ids: str, boot_id: str = "boot-1") -> None:
    """Register workers."""
    for number, worker_id in enumerate(worker_ids, start=1):
        await store.workers.register(Worker(worker_id, APP, process(boot_id, number), (BINDING,)))


def new_job(
    local_id: str,
    options: JobOptions | None = None,
    *,
    app: str = APP,
    binding: str = BINDING,
    delay_ms: int | None = None,
) -> NewJob:
    """Return a job of a binding without limits that matter; who wants limits declares the binding before."""
    first_due = FirstDue(delay_ms=delay_ms)
    chosen = options or JobOptions(timeout_ms=TIMEOUT_MS)
    return NewJob(app, binding, local_id, "{}", chosen, first_due, declaration=BindingDeclaration(binding, WIDE))


async def sweep_all(store: Store, *, kept: timedelta = timedelta(0), limit: int = 10) -> int:
    """Remove what ended that long ago; return how many jobs were removed."""
    await store.bindings.declare(APP, [BindingDeclaration(BINDING, WIDE, Retention(kept, kept))])
    return (await store.jobs.sweep(APP, limit)).jobs


async def take(
    store: Store, worker_id: str = "w1", limit: int = 10, bindings: tuple[str, ...] = (BINDING,)
) -> list[ClaimedJob]:
    return list(await store.jobs.claim(Claim(APP, worker_id, bindings, limit)))


async def take_one(store: Store, worker_id: str = "w1") -> ClaimedJob:
    (claimed,) = await take(store, worker_id, limit=1)
    return claimed


def completed(job: ClaimedJob, result: str | None = None, at: int = START_MS) -> Report:
    return Report(
        job.key, job.claim, JobState.COMPLETED, Outcome.COMPLETED, result=result, started_at=at, ended_at=at + 1
    )


def failed(job: ClaimedJob, *, again: bool, delay_ms: int = 0, at: int = START_MS, error: str = "boom") -> Report:
    state = JobState.SCHEDULED if again else JobState.FAILED
    return Report(
        job.key, job.claim, state, Outcome.FAILED, delay_ms=delay_ms, error=error, started_at=at, ended_at=at + 1
    )


async def report(store: Store, one: Report) -> bool:
    return (await store.jobs.report([one]))[0]


async def seen(store: Store, job_id: str) -> Job:
    job = await store.jobs.get(APP, job_id)
    assert job is not None
    return job


def local_ids(jobs: list[ClaimedJob]) -> list[str]:
    return [job.job_id.partition(":")[2] for job in jobs]
