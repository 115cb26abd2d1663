"""What the engine needs of a performer, and what a schedule's payload function is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from kizami.core.times import EpochMs
from kizami.engine.context import JobContext
from kizami.engine.payload_function import PayloadFunction
from kizami.store.protocol import ClaimedJob, NewJob, ScheduleDefinition

RunsIn = Literal["loop", "thread", "process"]
"""Where a performer is called: async ones on the event loop, the others in a thread or a child process."""


class Work(Protocol):
    """How a child process finds a performer: small, picklable, and equal for the same performer."""

    def load(self) -> Callable[[str, JobContext], object]:
        """Import the performer's module and return what calls it."""
        ...


class Performing(Protocol):
    """A registered performer, as the executor calls it."""

    binding: str
    runs_in: RunsIn

    def call(self, payload: str, context: JobContext) -> object:
        """Call the user's function with the rebuilt payload; an awaitable on the loop. Raises PayloadError."""
        ...

    def work_for(self, job: ClaimedJob) -> Work:
        """Return how a child process finds this performer; only for those that run in one."""
        ...


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule in code: its stored definition, and how the job of a tick is made.

    Without a `payload_function`, `payload` is the payload. `check_job` turns it into the job. What either raises
    settles the tick as failed.
    """

    definition: ScheduleDefinition
    check_job: Callable[[object, EpochMs, bool], NewJob]
    payload: object = None
    payload_function: PayloadFunction | None = None
