"""Durable single enqueues a second: one caller that waits for each commit, and 32 that share them (group commit).

Both take turns on the same disk, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from kizami.runtime import SystemRuntime
from kizami.store.protocol import NewJob
from kizami.store.sqlite.store import SqliteStore

CALLERS = (1, 32)
ROUNDS = 7
SECONDS = 0.7


async def enqueues_per_second(store: SqliteStore, names: Iterator[int], callers: int) -> float:
    """Return how many jobs per second `callers` tasks enqueue, each one job at a time."""
    started = perf_counter()

    async def call() -> int:
        done = 0
        while perf_counter() - started < SECONDS:
            (answer,) = await store.jobs.enqueue([NewJob("bench", "send", f"j{next(names)}", '{"to":"somebody"}')])
            assert not answer.existing
            done += 1
        return done

    total = sum(await asyncio.gather(*(call() for _ in range(callers))))
    return total / (perf_counter() - started)


async def measure(folder: Path) -> dict[int, list[float]]:
    """Return the rates of each number of callers, in turn."""
    store = SqliteStore(str(folder / "bench.db"), SystemRuntime())
    await store.open()
    names = itertools.count()
    rates: dict[int, list[float]] = {callers: [] for callers in CALLERS}
    for _ in range(ROUNDS):
        for callers in CALLERS:
            rates[callers].append(await enqueues_per_second(store, names, callers))
    await store.close()
    return rates


def main() -> None:
    """Measure in a folder (the present one unless named) and print one Markdown table."""
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as folder:
        rates = asyncio.run(measure(Path(folder)))
    base = median(rates[CALLERS[0]])
    print("| callers | jobs/s, median | slowest round | ratio |\n| ---: | ---: | ---: | ---: |")
    for callers, each in rates.items():
        print(f"| {callers} | {median(each):,.0f} | {min(each):,.0f} | {median(each) / base:.1f} |")


if __name__ == "__main__":
    main()
