"""Draining a backlog of no-op jobs on one SQLite file: Kizami's whole worker, huey's, and the bare loop.

Each runs in a process of its own, on a file of its own, under the default settings but for what is said here. Kizami:
`Kizami().running()`, async performer, payload checked, synchronous=FULL, policy and worker at 100 jobs at once. huey:
SqliteHuey, two threads, with and without fsync; it removes a task before it runs, so a crash loses it. The bare loop
claims 100 rows by one statement, runs as many async no-ops with their payload checked and a timeout each, and reports
by one executemany, each in a durable commit. Three rounds in turn; the clock runs from the first job to the last.

Run: python benchmarks/drain_sqlite.py [jobs]
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

JOBS = 10_000
ROUNDS = 3
SIDES = ("kizami", "huey fsync", "huey", "bare loop")


class Count:
    """Counts jobs, and the time from the first to the last."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self.seen, self.began, self.ended = jobs, 0, 0.0, 0.0

    def hit(self) -> bool:
        """Count one; tell whether it was the last."""
        self.seen += 1
        if self.seen == 1:
            self.began = perf_counter()
        self.ended = perf_counter()
        return self.seen == self.jobs

    @property
    def rate(self) -> float:
        """Return the jobs a second."""
        return self.jobs / (self.ended - self.began)


async def drain_kizami(folder: Path, jobs: int) -> float:
    """Return the rate of Kizami's worker, until every report is durable."""
    from kizami import Kizami  # noqa: PLC0415 - each side loads only itself

    app, count = Kizami("bench", database_url=f"sqlite:///{folder / 'kizami.db'}"), Count(jobs)
    over = asyncio.Event()

    @app.performer
    async def noop(payload: int) -> None:  # noqa: ARG001 - its payload is checked, that is all
        if count.hit():
            over.set()

    await app.open()
    for first in range(0, jobs, 1_000):
        await app.enqueue_many(noop.job(number) for number in range(first, min(jobs, first + 1_000)))
    await app.close()
    async with app.running():
        await over.wait()
    count.ended = max(count.ended, perf_counter() if count.seen == jobs else 0.0)
    return count.rate


def drain_huey(folder: Path, jobs: int, *, fsync: bool) -> float:
    """Return the rate of huey's consumer."""
    import threading  # noqa: PLC0415 - each side loads only itself

    from huey import SqliteHuey  # noqa: PLC0415 - as above

    logging.getLogger("huey").setLevel(logging.ERROR)
    huey, count, over = (
        SqliteHuey("bench", filename=str(folder / "huey.db"), fsync=fsync),
        Count(jobs),
        threading.Event(),
    )

    def noop(payload: int) -> None:  # noqa: ARG001 - as above
        if count.hit():
            over.set()

    task = huey.task()(noop)
    for number in range(jobs):
        task(number)
    consumer = huey.create_consumer(workers=2, worker_type="thread", initial_delay=0.01)
    consumer.start()
    over.wait()
    consumer.stop(graceful=True)
    return count.rate


async def drain_bare(folder: Path, jobs: int) -> float:
    """Return the rate of the simplest durable loop."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - each side loads only itself

    from kizami.store.sqlite.connection import connect  # noqa: PLC0415 - the same pragmas

    adapter, count = TypeAdapter(int), Count(jobs)
    connection = connect(str(folder / "bare.db"), busy_ms=5_000)
    connection.execute(
        "CREATE TABLE job (key INTEGER PRIMARY KEY, state INTEGER, due_at INTEGER, payload TEXT, ended_at)"
    )
    connection.execute("CREATE INDEX ready ON job (due_at, key) WHERE state = 0")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO job VALUES (?, 0, 1, ?, NULL)", ((key, str(key)) for key in range(jobs)))
    connection.execute("COMMIT")

    async def noop(payload: int) -> None:  # noqa: ARG001 - as above
        count.hit()

    async def perform(payload: str) -> None:
        async with asyncio.timeout(60):
            await noop(adapter.validate_json(payload))

    first = "SELECT key FROM job WHERE state = 0 ORDER BY due_at, key LIMIT 100"
    claim = f"UPDATE job SET state = 1 WHERE key IN ({first}) RETURNING key, payload"  # noqa: S608 - constants
    while rows := connection.execute(claim).fetchall():
        await asyncio.gather(*(perform(row["payload"]) for row in rows))
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE job SET state = 2, ended_at = 1 WHERE key = ?", [(row["key"],) for row in rows])
        connection.execute("COMMIT")
    count.ended = perf_counter()
    return count.rate


def drain(side: str, folder: Path, jobs: int) -> float:
    """Return one side's rate, in this process."""
    match side:
        case "kizami":
            return asyncio.run(drain_kizami(folder, jobs))
        case "bare loop":
            return asyncio.run(drain_bare(folder, jobs))
        case _:
            return drain_huey(folder, jobs, fsync=side == "huey fsync")


def measured(side: str, jobs: int) -> float:
    """Return one side's rate, in a process of its own."""
    with TemporaryDirectory(dir=".") as folder:
        command = [sys.executable, __file__, "--side", side, folder, str(jobs)]
        return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    """Measure, and print one Markdown table."""
    if sys.argv[1:2] == ["--side"]:
        print(json.dumps(drain(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
        return
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        for side in SIDES:
            rates[side].append(measured(side, jobs))
    base = median(rates["kizami"])
    print("| drain | jobs/s, median | least | greatest | kizami / it |\n| --- | ---: | ---: | ---: | ---: |")
    for side, each in rates.items():
        print(f"| {side} | {median(each):,.0f} | {min(each):,.0f} | {max(each):,.0f} | {base / median(each):.2f} |")


if __name__ == "__main__":
    main()
