"""Kizami beside pgqueuer, procrastinate and the bare loop on one durable PostgreSQL: drain, enqueue, latency.

Every side runs in processes of its own, on a database of its own, with fsync and synchronous_commit=on. Kizami under
its default settings. pgqueuer over asyncpg and uvloop, at its default batch size of 10 and at 500, the best of those
tried; procrastinate over psycopg with 100 jobs at once. The bare loop claims 200 rows by one statement,
runs as many async no-ops with their payload checked and a timeout each, and reports by one statement.

- drain: a backlog of no-op jobs by one worker process; the clock runs from the first job to the last, and to the last
  report where the side tells of it (Kizami, the bare loop).
- enqueue one: one caller, one job a commit. enqueue many: 1,000 jobs a call.
- latency: from the enqueue call in one process to the handler's start in another, one job at a time.

Three rounds in turn. Run: python benchmarks/peers_postgres.py [drain|one|many|latency ...]
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.queue_postgres import a_server
from tests.postgres_server import fresh_database

ROUNDS: Final = 3
DRAINED: Final = {"procrastinate": 1_000, "pgqueuer": 10_000}
JOBS: Final = 20_000
ONES, MANY, CALL, POSTS = 1_000, 20_000, 1_000, 200
SIDES: Final = ("kizami", "pgqueuer", "pgqueuer 500", "procrastinate", "bare")
WORKS: Final = ("drain", "one", "many", "latency")
Run = Callable[[], None]


class Side(Protocol):
    """A queue under measurement."""

    async def prepare(self) -> None:
        """Make the schema."""

    def enqueuing(self) -> Any:
        """Open it for enqueueing: a context that gives `one(payload)` and `many(count)`."""

    async def work(self, started: Callable[[int], None], over: asyncio.Event) -> None:
        """Run a worker until `over`; call `started` with each job's payload."""


Enqueuing = tuple[Callable[[int], Awaitable[Any]], Callable[[int], Awaitable[Any]]]


class KizamiSide:
    """Kizami's whole worker."""

    def __init__(self, url: str) -> None:
        from kizami import Kizami  # noqa: PLC0415 - each side loads only itself

        self._url = url
        self._app = Kizami("bench", database_url=url)
        self._started: Callable[[int], None] = lambda _: None

        @self._app.performer
        async def noop(payload: int) -> None:
            self._started(payload)

        self._noop = noop

    async def prepare(self) -> None:
        """Make the schema."""
        from kizami.store.postgres.migrate import migrate  # noqa: PLC0415 - each side loads only itself
        from kizami.store.postgres.place import place_of  # noqa: PLC0415 - as above

        await asyncio.to_thread(migrate, place_of(self._url))

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuing]:
        """Open the app, no worker."""

        async def many(count: int) -> None:
            await self._app.enqueue_many(self._noop.job(0) for _ in range(count))

        await self._app.open()
        try:
            yield self._noop.enqueue, many
        finally:
            await self._app.close()

    async def work(self, started: Callable[[int], None], over: asyncio.Event) -> None:
        """Run the worker; its end waits for the last report."""
        self._started = started
        async with self._app.running():
            await over.wait()


class PgQueuerSide:
    """pgqueuer over asyncpg."""

    def __init__(self, url: str, batch: int) -> None:
        self._url, self._batch = url, batch

    async def prepare(self) -> None:
        """Make the schema."""
        import asyncpg  # noqa: PLC0415 - each side loads only itself
        from pgqueuer.db import AsyncpgDriver  # noqa: PLC0415 - as above
        from pgqueuer.queries import Queries  # noqa: PLC0415 - as above

        connection = await asyncpg.connect(self._url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuing]:
        """Open one connection."""
        import asyncpg  # noqa: PLC0415 - each side loads only itself
        from pgqueuer.db import AsyncpgDriver  # noqa: PLC0415 - as above
        from pgqueuer.queries import Queries  # noqa: PLC0415 - as above

        connection = await asyncpg.connect(self._url)
        queries = Queries(AsyncpgDriver(connection))

        async def one(payload: int) -> None:
            await queries.enqueue("noop", str(payload).encode())

        async def many(count: int) -> None:
            await queries.enqueue(["noop"] * count, [b"0"] * count, [0] * count)

        try:
            yield one, many
        finally:
            await connection.close()

    async def work(self, started: Callable[[int], None], over: asyncio.Event) -> None:
        """Run the worker: one connection at the default batch size, a pool at a greater one."""
        import asyncpg  # noqa: PLC0415 - each side loads only itself
        from pgqueuer import PgQueuer  # noqa: PLC0415 - as above
        from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver, Driver  # noqa: PLC0415 - as above

        driver: Driver
        if self._batch > 10:  # noqa: PLR2004 - the default
            driver = AsyncpgPoolDriver(await asyncpg.create_pool(self._url, min_size=4, max_size=10))
        else:
            driver = AsyncpgDriver(await asyncpg.connect(self._url))
        queue = PgQueuer(driver)

        @queue.entrypoint("noop")
        async def noop(job: Any) -> None:
            started(int(job.payload))

        running = asyncio.create_task(
            queue.run(batch_size=self._batch, max_concurrent_tasks=max(100, 2 * self._batch)),
        )
        await over.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class ProcrastinateSide:
    """procrastinate over psycopg."""

    def __init__(self, url: str) -> None:
        import procrastinate  # noqa: PLC0415 - each side loads only itself

        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=10))
        self._started: Callable[[int], None] = lambda _: None

        @self._app.task(name="noop")
        async def noop(payload: int) -> None:
            self._started(payload)

        self._noop = noop

    async def prepare(self) -> None:
        """Make the schema."""
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuing]:
        """Open its pool."""

        async def one(payload: int) -> None:
            await self._noop.defer_async(payload=payload)

        async def many(count: int) -> None:
            payload: dict[str, Any] = {"payload": 0}
            await self._noop.batch_defer_async(*[payload] * count)

        async with self._app.open_async():
            yield one, many

    async def work(self, started: Callable[[int], None], over: asyncio.Event) -> None:
        """Run the worker."""
        self._started = started
        async with self._app.open_async():
            running = asyncio.create_task(self._app.run_worker_async(concurrency=100, install_signal_handlers=False))
            await over.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


class BareSide:
    """The simplest durable loop over psycopg: it polls nothing, so it has no latency."""

    TABLE = """
    CREATE TABLE job (
      key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state int NOT NULL DEFAULT 0,
      due_at bigint NOT NULL DEFAULT 1, payload text NOT NULL, ended_at bigint
    );
    CREATE INDEX ready ON job (due_at, key) WHERE state = 0;
    """
    CLAIM = """
    UPDATE job SET state = 1
    WHERE key IN (SELECT key FROM job WHERE state = 0 ORDER BY due_at, key LIMIT 200 FOR UPDATE SKIP LOCKED)
    RETURNING key, payload
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def prepare(self) -> None:
        """Make the table."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(self.TABLE)

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuing]:
        """Open one connection."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:

            async def one(payload: int) -> None:
                await connection.execute("INSERT INTO job (payload) VALUES (%s)", (str(payload),))

            async def many(count: int) -> None:
                await connection.execute("INSERT INTO job (payload) SELECT unnest(%s::text[])", (["0"] * count,))

            yield one, many

    async def work(self, started: Callable[[int], None], over: asyncio.Event) -> None:
        """Claim, perform, report, until nothing is left."""
        from pydantic import TypeAdapter  # noqa: PLC0415 - each side loads only itself

        adapter = TypeAdapter(int)

        async def noop(payload: int) -> None:
            started(payload)

        async def perform(payload: str) -> None:
            async with asyncio.timeout(60):
                await noop(adapter.validate_json(payload))

        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute("SET plan_cache_mode = force_custom_plan")
            while rows := await (await connection.execute(self.CLAIM)).fetchall():
                await asyncio.gather(*(perform(row[1]) for row in rows))
                keys = [row[0] for row in rows]
                await connection.execute("UPDATE job SET state = 2, ended_at = 1 WHERE key = ANY (%s)", (keys,))
        await over.wait()


def side_of(name: str, url: str) -> Side:
    """Return a side by name."""
    match name:
        case "kizami":
            return KizamiSide(url)
        case "procrastinate":
            return ProcrastinateSide(url)
        case "bare":
            return BareSide(url)
        case _:
            return PgQueuerSide(url, 500 if name.endswith("500") else 10)


async def drain(name: str, url: str) -> float:
    """Return jobs a second."""
    side, jobs = side_of(name, url), DRAINED.get(name, JOBS)
    async with side.enqueuing() as (_, many):
        for first in range(0, jobs, CALL):
            await many(min(CALL, jobs - first))
    over, seen, began = asyncio.Event(), 0, 0.0

    def started(_: int) -> None:
        nonlocal seen, began
        began = began or time.perf_counter()
        seen += 1
        if seen == jobs:
            over.set()

    working = asyncio.create_task(side.work(started, over))
    await over.wait()
    if name in ("kizami", "bare"):
        await working
    ended = time.perf_counter()
    await working
    return jobs / (ended - began)


async def enqueue_one(name: str, url: str) -> float:
    """Return jobs a second."""
    async with side_of(name, url).enqueuing() as (one, _):
        for _ in range(20):
            await one(0)
        began = time.perf_counter()
        for _ in range(ONES):
            await one(0)
        return ONES / (time.perf_counter() - began)


async def enqueue_many(name: str, url: str) -> float:
    """Return jobs a second."""
    async with side_of(name, url).enqueuing() as (_, many):
        await many(CALL)
        began = time.perf_counter()
        for _ in range(0, MANY, CALL):
            await many(CALL)
        return MANY / (time.perf_counter() - began)


async def latency(name: str, url: str) -> list[float]:
    """Return the milliseconds that each job took from the call in this process to the handler in another."""
    command = [sys.executable, __file__, "--worker", name, url]
    worker = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stdin=subprocess.PIPE)
    assert worker.stdout is not None
    taken: list[float] = []
    async with side_of(name, url).enqueuing() as (one, _):
        for number in range(POSTS + 20):
            called = time.monotonic_ns()
            await one(number)
            line = json.loads(await worker.stdout.readline())
            if number >= 20:  # noqa: PLR2004 - the first ones make connections and plans
                taken.append((line["at"] - called) / 1e6)
    worker.terminate()
    await worker.wait()
    return taken


async def work_for_latency(name: str, url: str) -> None:
    """Be the worker of `latency`: a line for each job."""

    def started(number: int) -> None:
        print(json.dumps({"number": number, "at": time.monotonic_ns()}), flush=True)

    await side_of(name, url).work(started, asyncio.Event())


def in_process(work: str, name: str, server: str) -> Any:
    """Return one measurement, made in a process of its own on a database of its own."""
    with fresh_database(server) as url:
        asyncio.run(side_of(name, url).prepare())
        command = [sys.executable, __file__, "--measure", work, name, url]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
        return json.loads(done.stdout.splitlines()[-1])


def measured(work: str, name: str, url: str) -> Any:
    """Measure one side in this process."""
    measure: Any = {"drain": drain, "one": enqueue_one, "many": enqueue_many, "latency": latency}[work]
    if name.startswith("pgqueuer"):
        import uvloop  # noqa: PLC0415 - as its own command does

        return uvloop.run(measure(name, url))
    return asyncio.run(measure(name, url))


def table(work: str, figures: dict[str, list[Any]]) -> None:
    """Print one work's Markdown table."""
    if work == "latency":
        print("\n| latency, ms | p50 | p99 |\n| --- | ---: | ---: |")
        for name, rounds in figures.items():
            p50, p99 = ([sorted(one)[int(len(one) * part)] for one in rounds] for part in (0.5, 0.99))
            print(f"| {name} | {median(p50):.1f} | {median(p99):.1f} |")
        return
    base = median(figures["kizami"])
    print(f"\n| {work} | jobs/s, median | least | greatest | kizami / it |\n| --- | ---: | ---: | ---: | ---: |")
    for name, rates in figures.items():
        middle = median(rates)
        print(f"| {name} | {middle:,.0f} | {min(rates):,.0f} | {max(rates):,.0f} | {base / middle:.2f} |")


def main() -> None:
    """Measure every side in turn, and print a table for each kind of work."""
    match sys.argv[1:]:
        case ["--measure", work, name, url]:
            print(json.dumps(measured(work, name, url)))
            return
        case ["--worker", name, url]:
            asyncio.run(work_for_latency(name, url))
            return
        case works:
            pass
    with a_server() as server:
        for work in works or WORKS:
            sides = [name for name in SIDES if work != "latency" or name in ("kizami", "pgqueuer", "procrastinate")]
            figures: dict[str, list[Any]] = {name: [] for name in sides}
            for _ in range(ROUNDS):
                for name in sides:
                    figures[name].append(in_process(work, name, server))
            table(work, figures)


if __name__ == "__main__":
    main()
