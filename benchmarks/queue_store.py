"""The queue's store beside the bare statements it is made of, on one SQLite file each, durable (synchronous=FULL).

The bare side is one wide table with two partial indexes: rows come in by one executemany, 100 are claimed by one
UPDATE ... RETURNING and ended by one executemany. The store does the same work through its protocol, under the default
policy but for its concurrency. Both take turns, so that a busy moment of the machine hits both. `cpu` counts the
process's own time, `wall` also the disk and whatever else the machine does.

With `--backlog` it measures claim, report, first page and counts with few and with many jobs waiting.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from kizami.core.options import FirstDue, JobOptions
from kizami.core.policy import Policy
from kizami.core.states import JobState
from kizami.runtime import SystemRuntime, sortable_id
from kizami.store.protocol import BindingDeclaration, Claim, ClaimedJob, JobFilter, NewJob, Outcome, Report, Worker
from kizami.store.sqlite.connection import connect
from kizami.store.sqlite.store import SqliteStore

APP, BINDING, WORKER = "bench", "send", "worker"
JOBS, BATCH, ROUNDS = 6_000, 100, 7
FEW, MANY, BUSY = 10_000, 1_000_000, 100_000
PAYLOAD = '{"to":"somebody"}'
RUNTIME = SystemRuntime()

TABLE = """
CREATE TABLE job (
  key INTEGER PRIMARY KEY, queue INTEGER NOT NULL, local_id TEXT NOT NULL, state TEXT NOT NULL,
  priority INTEGER NOT NULL, order_key INTEGER NOT NULL, due_at INTEGER NOT NULL, claim INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0, attempts_allowed INTEGER NOT NULL, timeout_ms INTEGER NOT NULL,
  guarantee TEXT NOT NULL, payload TEXT NOT NULL, worker_id TEXT, alive_until INTEGER, started_at INTEGER,
  ended_at INTEGER, progress REAL,
  result TEXT, error TEXT
) STRICT
"""
READY = "CREATE INDEX ready ON job (queue, order_key) WHERE state = 'SCHEDULED'"
ACTIVE = "CREATE INDEX active ON job (queue, worker_id) WHERE state = 'QUEUED'"
INSERT = "INSERT INTO job (key, queue, local_id, state, priority, order_key, due_at, attempts_allowed, timeout_ms, \
guarantee, payload) VALUES (?, 1, ?, 'SCHEDULED', 0, ?, ?, 3, 60000, 'at-least-once', ?)"
CLAIM = "UPDATE job SET state = 'QUEUED', claim = claim + 1, attempt = attempt + 1, worker_id = 'w', alive_until = ?1, \
started_at = ?1 WHERE key IN (SELECT key FROM job WHERE queue = 1 AND state = 'SCHEDULED' ORDER BY order_key, key \
LIMIT 100) RETURNING *"
END = "UPDATE job SET state = 'COMPLETED', worker_id = NULL, alive_until = NULL, ended_at = ?, result = ? \
WHERE key = ? AND claim = ? AND state = 'QUEUED'"


@dataclass(frozen=True, slots=True)
class Rate:
    """Jobs a second by the process's own time and by the clock on the wall."""

    cpu: float
    wall: float


class Stopwatch:
    """Measures one stretch of work."""

    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), process_time()

    def rate(self, count: int) -> Rate:
        """Return the rate of `count` pieces of work done since it was made."""
        return Rate(count / (process_time() - self._cpu), count / (perf_counter() - self._wall))


def run_bare(path: Path) -> tuple[Rate, Rate]:
    """Return the rates of the bare statements: enqueued, drained."""
    connection = connect(str(path), busy_ms=5_000)
    for statement in (TABLE, READY, ACTIVE):
        connection.execute(statement)
    now = RUNTIME.clock.now_ms()
    rows = [(number, sortable_id(RUNTIME.clock, RUNTIME.entropy), now, now, PAYLOAD) for number in range(JOBS)]
    watch = Stopwatch()
    within_transaction(connection, lambda: connection.executemany(INSERT, rows).fetchall())
    enqueued = watch.rate(JOBS)
    watch, drained = Stopwatch(), 0
    while taken := within_transaction(connection, lambda: connection.execute(CLAIM, (now,)).fetchall()):
        ended_in_bare(connection, now, taken)
        drained += len(taken)
    assert drained == JOBS
    rate = watch.rate(JOBS)
    connection.close()
    return enqueued, rate


def ended_in_bare(connection: sqlite3.Connection, now: int, taken: list[sqlite3.Row]) -> None:
    """End the rows of one claim."""
    ends = [(now, '"ok"', row["key"], row["claim"]) for row in taken]
    within_transaction(connection, lambda: connection.executemany(END, ends).fetchall())


def within_transaction(connection: sqlite3.Connection, work: Callable[[], list[sqlite3.Row]]) -> list[sqlite3.Row]:
    """Run some work in a durable transaction."""
    connection.execute("BEGIN IMMEDIATE")
    answer = work()
    connection.execute("COMMIT")
    return answer


async def opened(path: Path) -> SqliteStore:
    """Open a store with one worker and one binding."""
    store = SqliteStore(str(path), RUNTIME)
    await store.open()
    await store.workers.register(Worker(WORKER, APP, RUNTIME.process, (BINDING,)))
    await store.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=1_000))])
    return store


def new_jobs(count: int, options: JobOptions | None = None, delay_ms: int | None = None) -> list[NewJob]:
    """Return jobs as an app makes them."""
    chosen, due = options or JobOptions(), FirstDue(delay_ms=delay_ms)
    ids = (sortable_id(RUNTIME.clock, RUNTIME.entropy) for _ in range(count))
    return [NewJob(APP, BINDING, local_id, PAYLOAD, chosen, due) for local_id in ids]


async def take(store: SqliteStore) -> tuple[ClaimedJob, ...]:
    """Claim a batch."""
    return await store.jobs.claim(Claim(APP, WORKER, (BINDING,), BATCH))


async def end(store: SqliteStore, taken: tuple[ClaimedJob, ...]) -> None:
    """Report a batch as completed."""
    at = RUNTIME.clock.now_ms()
    reports = [
        Report(job.key, job.claim, JobState.COMPLETED, Outcome.COMPLETED, result='"ok"', started_at=at, ended_at=at)
        for job in taken
    ]
    assert all(await store.jobs.report(reports))


async def run_store(path: Path) -> tuple[Rate, Rate]:
    """Return the rates of the store: enqueued, drained."""
    store = await opened(path)
    jobs = new_jobs(JOBS)
    watch = Stopwatch()
    await store.jobs.enqueue(jobs)
    enqueued = watch.rate(JOBS)
    watch, drained = Stopwatch(), 0
    while taken := await take(store):
        await end(store, taken)
        drained += len(taken)
    assert drained == JOBS
    rate = watch.rate(JOBS)
    await store.close()
    return enqueued, rate


def compare(folder: Path) -> None:
    """Print the rates of both sides and their ratio."""
    bare, store = [], []
    for number in range(ROUNDS):
        bare.append(run_bare(folder / f"bare{number}.db"))
        store.append(asyncio.run(run_store(folder / f"store{number}.db")))
    print("| work | clock | bare/s | store/s | store / bare |\n| --- | --- | ---: | ---: | ---: |")
    for at, work in enumerate(("enqueue", "claim and report")):
        for clock in ("cpu", "wall"):
            first = median(getattr(each[at], clock) for each in bare)
            second = median(getattr(each[at], clock) for each in store)
            print(f"| {work} | {clock} | {first:,.0f} | {second:,.0f} | {second / first:.0%} |")


async def fill(store: SqliteStore, count: int, busy: int) -> None:
    """Enqueue ready jobs, as many future ones, and those of one key."""
    for delay_ms in (None, 3_600_000):
        for _ in range(count // 10_000):
            await store.jobs.enqueue(new_jobs(10_000, delay_ms=delay_ms))
    for _ in range(busy // 10_000):
        await store.jobs.enqueue(new_jobs(10_000, JobOptions(concurrency_key="busy", priority=1)))


async def costs(path: Path, count: int, busy: int) -> dict[str, float]:
    """Return the median milliseconds of each operation with a backlog of that size."""
    store = await opened(path)
    await fill(store, count, busy)
    while (await store.jobs.horizon(APP, (BINDING,))).ready and (taken := await take(store)):
        await end(store, taken[1:])
        if len(taken) == BATCH:
            break  # the busy key's jobs have all been met and wait for their key
    spent: dict[str, list[float]] = {"claim": [], "report": [], "first page": [], "counts": [], "page of SCHEDULED": []}
    for _ in range(15):
        taken = await timed(spent["claim"], take(store))
        await timed(spent["report"], end(store, taken))
        await timed(spent["first page"], store.jobs.list(JobFilter(APP)))
        await timed(spent["page of SCHEDULED"], store.jobs.list(JobFilter(APP, (JobState.SCHEDULED,))))
        await timed(spent["counts"], store.jobs.count_by_state(APP))
    await store.close()
    return {name: median(each) for name, each in spent.items()}


async def timed(spent: list[float], operation: object) -> tuple[ClaimedJob, ...]:
    """Await an operation and note its milliseconds."""
    started = perf_counter()
    answer: tuple[ClaimedJob, ...] = await operation  # type: ignore[misc]  # what it is depends on the operation
    spent.append(1000 * (perf_counter() - started))
    return answer


def compare_backlogs(folder: Path) -> None:
    """Print what the operations cost with few and with many jobs waiting."""
    few = asyncio.run(costs(folder / "few.db", FEW, FEW))
    many = asyncio.run(costs(folder / "many.db", MANY, BUSY))
    print(f"| operation | ms, {FEW:,} each | ms, {MANY:,} each | ratio |\n| --- | ---: | ---: | ---: |")
    for name, each in few.items():
        print(f"| {name} | {each:.2f} | {many[name]:.2f} | {many[name] / each:.1f} |")


def main() -> None:
    """Measure in a folder (the present one unless named) and print one Markdown table."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--backlog"]
    with TemporaryDirectory(dir=arguments[0] if arguments else ".") as folder:
        (compare_backlogs if "--backlog" in sys.argv else compare)(Path(folder))


if __name__ == "__main__":
    main()
