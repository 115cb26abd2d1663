"""What the engine needs of a performer, and what a schedule's payload function is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kizami.core.times import EpochMs
from kizami.engine.context import JobContext
from kizami.store.protocol import NewJob, ScheduleDefinition


class Performing(Protocol):
    """A registered performer, as the executor calls it."""

    binding: str
    is_async: bool

    def call(self, payload: str, context: JobContext) -> object:
        """Call the user's function with the rebuilt payload; an awaitable when `is_async`. Raises PayloadError."""
        ...


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule in code: its stored definition, and how the job of a tick is made.

    `payload_function` gets the tick's time and whether somebody fires by hand, and returns the payload or an awaitable
    of it; without one, `payload` is the payload. `check_job` turns it into the job. What either raises settles the
    tick as failed.
    """

    definition: ScheduleDefinition
    check_job: Callable[[object, EpochMs, bool], NewJob]
    payload: object = None
    payload_function: Callable[[EpochMs, bool], object] | None = None
