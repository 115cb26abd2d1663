"""The API's answers as types: snake_case, every time in epoch milliseconds, local text beside it where a zone rules."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt
from pydantic.alias_generators import to_camel

from kizami.core.states import JobState
from kizami.core.times import MS_PER_SECOND
from kizami.core.zone import BEGINNING_S, END_S
from kizami.store.protocol import FireOutcome, Outcome, TickKind


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True)


class _Request(BaseModel):
    """A request's body: snake_case or camelCase, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class OriginAnswer(_Answer):
    """The tick that made a job."""

    schedule: str
    scheduled_at: int
    manual: bool
    lease: str | None


class AttemptAnswer(_Answer):
    """One line of a job's attempt log."""

    attempt: int
    outcome: Outcome
    error: str | None
    worker_id: str
    started_at: int
    ended_at: int


class JobAnswer(_Answer):
    """A job; `payload` and `result` are the JSON values themselves."""

    job_id: str
    app: str
    binding: str
    state: JobState
    payload: Any
    priority: int
    attempt: int
    attempts_allowed: int
    guarantee: str
    timeout_ms: int
    due_at: int
    created_at: int
    started_at: int | None
    ended_at: int | None
    progress: float | None
    result: Any
    result_note: str | None
    error: str | None
    worker_id: str | None
    origin: OriginAnswer | None
    attempts: tuple[AttemptAnswer, ...]


class JobList(_Answer):
    """A page of jobs, newest first, without their attempt logs; `next_cursor` is null on the last one."""

    jobs: tuple[JobAnswer, ...]
    next_cursor: str | None


class Stats(_Answer):
    """How many jobs were in each state at `counted_at`, in all and per binding, and deliveries per channel."""

    counted_at: int
    jobs: dict[JobState, int]
    bindings: dict[str, dict[JobState, int]]
    deliveries: dict[str, dict[str, int]]
    workers: int


class FireAnswer(_Answer):
    """A line of the fire ledger; for a stretch of dropped ticks, the first and last planned time and their number."""

    schedule: str
    kind: TickKind
    outcome: FireOutcome
    planned_at: int
    planned_at_local: str
    planned_last_at: int
    planned_last_at_local: str
    count: int
    acted_at: int
    acted_at_local: str
    lateness_ms: int
    by: str
    job_id: str | None
    reason: str | None
    version: int


class ScheduleAnswer(_Answer):
    """A schedule. Every `*_at_local` is its neighbour's instant with zone and offset in force.

    One whose stored timing can't be read has none, and `broken` says why.
    """

    name: str
    timing: dict[str, Any] | None
    broken: str | None
    description: str
    time_zone: str
    gmt_offset: str
    binding: str
    overlap: str
    driver: str
    lease: str | None
    version: int
    next_at: int | None
    next_at_local: str | None
    last_planned_at: int | None
    last_planned_at_local: str | None
    last_fired_at: int | None
    last_fired_at_local: str | None
    lateness_ms: int | None
    last_job_id: str | None
    fired_count: int
    skipped_count: int
    skipped_at: int | None
    skipped_at_local: str | None
    missed_count: int
    failed_count: int
    last_error: str | None
    last_error_at: int | None
    last_error_at_local: str | None
    paused_at: int | None
    paused_at_local: str | None
    registered_at: int
    registered_at_local: str
    zone_data: str | None


class ScheduleDetail(ScheduleAnswer):
    """A schedule with the newest lines of its fire ledger."""

    ledger: tuple[FireAnswer, ...]


class ScheduleList(_Answer):
    """The schedules of the app by name."""

    schedules: tuple[ScheduleAnswer, ...]


class PlannedTime(_Answer):
    """One planned time."""

    at: int
    local: str


class Preview(_Answer):
    """The next planned times of a schedule."""

    schedule: str
    fires: tuple[PlannedTime, ...]


class TickRequest(_Request):
    """A tick from an external clock; without `scheduled_at` it is the latest planned time that isn't after now."""

    schedule: str
    scheduled_at: Annotated[StrictInt, Field(ge=BEGINNING_S * MS_PER_SECOND, lt=END_S * MS_PER_SECOND)] | None = None
    manual: StrictBool = False


class TickAnswer(_Answer):
    """What became of a tick; `duplicate` means that it had been delivered before, and nothing happened."""

    duplicate: bool
    outcome: FireOutcome
    job_id: str | None
    scheduled_at: int
    reason: str | None


class DeliveryAnswer(_Answer):
    """Something owed to a channel, or delivered; `content` is the message."""

    channel: str
    item: str
    content: Any
    due: str
    created_at: int
    delivered_at: int | None
    posted_channel: str | None
    ts: str | None
    attempts: int
    in_doubt_since: int | None
    set_aside_at: int | None
    note: str | None
    possible_duplicates: int


class DeliveryList(_Answer):
    """Deliveries, newest first."""

    deliveries: tuple[DeliveryAnswer, ...]


class RequeueRequest(_Request):
    """What is to be owed again: one item that was set aside, or without `item` all of the channel's."""

    channel: str
    item: str | None = None


class RequeueAnswer(_Answer):
    """How many deliveries are owed again."""

    requeued: int


class BoardAnswer(_Answer):
    """A status board; `synced_at` is when the data that it shows was fetched."""

    name: str
    channel: str
    posted_channel: str | None
    ts: str | None
    synced_at: int | None
    posted_at: int | None
    edited_at: int | None
    posts: int
    edits: int
    in_doubt_since: int | None
    note: str | None
    off: bool
    possible_duplicates: int


class BoardList(_Answer):
    """The boards of the app by name."""

    boards: tuple[BoardAnswer, ...]


class LeaseAnswer(_Answer):
    """A lease; it is free when `run_id` is null."""

    name: str
    run_id: str | None
    holder: str | None
    worker_id: str | None
    started_at: int | None
    heartbeat_at: int | None


class LeaseList(_Answer):
    """The leases of the app."""

    leases: tuple[LeaseAnswer, ...]


class WorkerAnswer(_Answer):
    """A worker process."""

    worker_id: str
    host: str
    pid: int
    bindings: tuple[str, ...]
    started_at: int
    seen_at: int
    note: str | None


class WorkerList(_Answer):
    """The registered workers of the app."""

    workers: tuple[WorkerAnswer, ...]


def json_value(stored: str | None) -> Any:
    """Return the value that stored JSON text stands for; text that is none stands for itself."""
    if stored is None:
        return None
    try:
        return json.loads(stored)
    except (ValueError, RecursionError):
        return stored
