"""What the engine needs of a performer, and what a schedule's payload function is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

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

    `make_payload(scheduled_at)` returns the payload or (kind "async") an awaitable of it, `check_job` turns it into the
    job; what either raises settles the tick as failed.
    """

    definition: ScheduleDefinition
    make_payload: Callable[[EpochMs], object]
    payload_kind: Literal["value", "sync", "async"]
    check_job: Callable[[object, EpochMs], NewJob]
