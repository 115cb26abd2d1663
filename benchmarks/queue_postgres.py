"""The queue on PostgreSQL beside the bare statements it is made of, on one server, durable (fsync, synchronous_commit).

The bare side is one wide table with two partial indexes over psycopg: single rows in a commit each, many rows by one
INSERT from unnest, 100 claimed by one UPDATE ... RETURNING and ended by another UPDATE from unnest. The store does the
same work through its protocol. Both take turns, so that a busy moment of the machine hits both.

It runs a server of its own, or uses the one that KIZAMI_TEST_POSTGRES names, with its settings.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psycopg

from kizami.core.policy import Policy
from kizami.core.states import JobState
from kizami.runtime import SystemRuntime, sortable_id
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.postgres.store import PostgresStore
from kizami.store.protocol import BindingDeclaration, Claim, NewJob, Outcome, Report, Worker

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres_server import VARIABLE, fresh_database, running_server

APP, BINDING, WORKER = "bench", "send", "worker"
JOBS, BATCH, ROUNDS, CALLERS, SECONDS = 5_000, 100, 5, 32, 0.7
PAYLOAD = '{"to":"somebody"}'
RUNTIME = SystemRuntime()

TABLE = """
CREATE TABLE job (
  key bigint PRIMARY KEY, queue bigint NOT NULL, local_id text NOT NULL, state text NOT NULL,
  order_key bigint NOT NULL, due_at bigint NOT NULL, claim bigint NOT NULL DEFAULT 0, attempt bigint NOT NULL DEFAULT 0,
  attempts_allowed bigint NOT NULL, timeout_ms bigint NOT NULL, guarantee text NOT NULL, payload text NOT NULL,
  worker_id text, alive_until bigint, started_at bigint, ended_at bigint, result text, error text
);
CREATE INDEX ready ON job (queue, order_key) WHERE state = 'SCHEDULED';
CREATE INDEX active ON job (queue, worker_id) WHERE state = 'QUEUED';
"""
INSERT = """
INSERT INTO job (key, queue, local_id, state, order_key, due_at, attempts_allowed, timeout_ms, guarantee, payload)
SELECT key, 1, local_id, 'SCHEDULED', key, key, 3, 60000, 'at-least-once', payload
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS r (key, local_id, payload)
"""
CLAIM = """
UPDATE job SET state = 'QUEUED', claim = claim + 1, attempt = attempt + 1, worker_id = 'w', alive_until = 1,
  started_at = 1
WHERE key IN (
  SELECT key FROM job WHERE queue = 1 AND state = 'SCHEDULED' ORDER BY order_key LIMIT %s FOR UPDATE SKIP LOCKED
)
RETURNING *
"""
END = """
UPDATE job SET state = 'COMPLETED', worker_id = NULL, alive_until = NULL, ended_at = 2, result = r.result
FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS r (key, claim, result)
WHERE job.key = r.key AND job.claim = r.claim AND job.state = 'QUEUED'
"""


def bare(url: str) -> dict[str, float]:
    """Return the rates of the bare statements."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS job")
        connection.execute(TABLE)
        rates = {"single, 1 caller": bare_single(connection)}
        rates[f"single, {CALLERS} callers"] = rates["single, 1 caller"]
        connection.execute("TRUNCATE job")
        ids = [sortable_id(RUNTIME.clock, RUNTIME.entropy) for _ in range(JOBS)]
        started = perf_counter()
        connection.execute(INSERT, (list(range(JOBS)), ids, [PAYLOAD] * JOBS))
        rates["bulk"] = JOBS / (perf_counter() - started)
        rates["claim and report"] = bare_drained(connection)
        return rates


def bare_single(connection: psycopg.Connection[Any]) -> float:
    """Return single-row commits a second."""
    started, key = perf_counter(), 0
    while perf_counter() - started < SECONDS:
        key += 1
        connection.execute(INSERT, ([key], [sortable_id(RUNTIME.clock, RUNTIME.entropy)], [PAYLOAD]))
    return key / (perf_counter() - started)


def bare_drained(connection: psycopg.Connection[Any]) -> float:
    """Return jobs a second, claimed and ended in batches."""
    started = perf_counter()
    while taken := connection.execute(CLAIM, (BATCH,)).fetchall():
        connection.execute(END, ([row[0] for row in taken], [row[6] for row in taken], ['"ok"'] * len(taken)))
    return JOBS / (perf_counter() - started)


def new_job() -> NewJob:
    """Return a job as an app makes it."""
    return NewJob(APP, BINDING, sortable_id(RUNTIME.clock, RUNTIME.entropy), PAYLOAD)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    """Open a store with one worker and one binding."""
    store = PostgresStore(place_of(url))
    await store.open()
    try:
        await store.workers.register(Worker(WORKER, APP, RUNTIME.process, (BINDING,)))
        await store.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=1_000))])
        yield store
    finally:
        await store.close()


async def stored(url: str) -> dict[str, float]:
    """Return the rates of the store."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE kizami_jobs, kizami_counts, kizami_count_deltas, kizami_workers CASCADE")
    async with opened(url) as store:
        rates = {"single, 1 caller": await singles(store, 1)}
        rates[f"single, {CALLERS} callers"] = await singles(store, CALLERS)
        await drain(store)
        jobs = [new_job() for _ in range(JOBS)]
        started = perf_counter()
        await store.jobs.enqueue(jobs)
        rates["bulk"] = JOBS / (perf_counter() - started)
        started = perf_counter()
        rates["claim and report"] = await drain(store) / (perf_counter() - started)
    return rates


async def singles(store: PostgresStore, callers: int) -> float:
    """Return how many jobs a second the callers enqueue, each one job at a time."""
    started = perf_counter()

    async def call() -> int:
        done = 0
        while perf_counter() - started < SECONDS:
            await store.jobs.enqueue([new_job()])
            done += 1
        return done

    return sum(await asyncio.gather(*(call() for _ in range(callers)))) / (perf_counter() - started)


async def drain(store: PostgresStore) -> int:
    """Claim and report all jobs; return how many."""
    done = 0
    while taken := await store.jobs.claim(Claim(APP, WORKER, (BINDING,), BATCH)):
        at = RUNTIME.clock.now_ms()
        ends = (JobState.COMPLETED, Outcome.COMPLETED)
        assert all(
            await store.jobs.report(
                [Report(job.key, job.claim, *ends, result='"ok"', started_at=at, ended_at=at) for job in taken]
            )
        )
        done += len(taken)
    return done


@contextmanager
def a_server() -> Iterator[str]:
    """Give the URL of a durable server."""
    elsewhere = os.environ.get(VARIABLE)
    if elsewhere:
        yield elsewhere
        return
    with running_server() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = on")
            connection.execute("SELECT pg_reload_conf()")
        yield url


def main() -> None:
    """Print the rates of both sides and their ratio as one Markdown table."""
    with a_server() as server, fresh_database(server) as url:
        migrate(place_of(url))
        rounds = [(bare(url), asyncio.run(stored(url))) for _ in range(ROUNDS)]
    print("| work | bare/s | store/s | store / bare |\n| --- | ---: | ---: | ---: |")
    for work in rounds[0][0]:
        first, second = (median(each[side][work] for each in rounds) for side in (0, 1))
        print(f"| {work} | {first:,.0f} | {second:,.0f} | {second / first:.0%} |")


if __name__ == "__main__":
    main()
