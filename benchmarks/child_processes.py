"""What it costs to perform a job in a child process: the first one on a new child, and the next ones on a warm child.

Measured from the moment at which a job is taken in hand to its answer, without the store. The performer does nothing.

    python benchmarks/child_processes.py [CHILDREN JOBS]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from kizami.core.options import JobOptions
from kizami.engine.child import Child
from kizami.engine.child_process import Order
from kizami.store.protocol import ClaimedJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.engine.context import JobContext

CHILDREN: Final = 10
JOBS: Final = 500


@dataclass(frozen=True, slots=True)
class Nothing:
    """Finds a performer that does nothing."""

    def load(self) -> Callable[[str, JobContext], object]:
        """Return it."""
        return _nothing


def _nothing(payload: str, context: JobContext) -> None:
    """Do nothing."""


JOB: Final = ClaimedJob(1, 1, "bench", "nothing#0:1", "nothing", "null", 1, 1, 0, 0, JobOptions(), None, 0)
ORDER: Final = Order(Nothing(), JOB, "bench", 2**62)


def milliseconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = perf_counter_ns()
    function()
    return (perf_counter_ns() - begun) / 1e6


def perform(child: Child) -> None:
    """Perform a job as an attempt does: get the child ready, then send the order."""
    child.load(ORDER.work)
    child.perform(ORDER, lambda _: None)


def measure(children: int, jobs: int) -> dict[str, list[float]]:
    """Return the milliseconds of each first job on a new child, of each warm job, and of each child's end."""
    first, warm, end = [], [], []
    for _ in range(children):
        child = Child()
        first.append(milliseconds(partial(perform, child)))
        warm += [milliseconds(partial(perform, child)) for _ in range(jobs // children)]
        end.append(milliseconds(child.stop))
    return {"first job on a new child": first, "job on a warm child": warm, "end of an idle child": end}


def main() -> None:
    """Measure and print one Markdown table."""
    children, jobs = (int(sys.argv[1]), int(sys.argv[2])) if sys.argv[2:] else (CHILDREN, JOBS)
    print("| in a child process | median ms | 19 of 20 within ms |\n| --- | ---: | ---: |")
    for what, times in measure(children, jobs).items():
        print(f"| {what} | {median(times):.2f} | {quantiles(times, n=20)[-1]:.2f} |")


if __name__ == "__main__":
    main()
