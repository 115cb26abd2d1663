"""Calling one performer as a worker would, without a database: for unit tests of users' functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from kizami.app.performer import Performer
from kizami.core.errors import DefinitionError
from kizami.core.times import to_epoch_ms
from kizami.engine.context import JobContext, enter
from kizami.runtime import ProcessIdentity
from kizami.store.protocol import ClaimedJob, Origin
from kizami.store.sqlite.store import SqliteStore
from kizami.testing.virtual import SeededEntropy, VirtualClock, VirtualLoop, VirtualRuntime

if TYPE_CHECKING:
    from datetime import datetime

P = TypeVar("P")
R = TypeVar("R")


def run_performer(
    performer: Performer[P, R],
    payload: P = None,  # type: ignore[assignment]  # a performer without payload needs no argument
    *,
    attempt: int = 1,
    schedule: str = "schedule",
    scheduled_at: datetime | None = None,
    seed: int = 1,
) -> R:
    """Call a performer once, in virtual time, and return what it returns; what it raises is raised here.

    The payload goes through JSON and back as in production. For a performer that takes a Tick, `schedule` and
    `scheduled_at` name the tick. Raises PayloadError, and DefinitionError for what is no performer.
    """
    if not isinstance(performer, Performer):
        raise DefinitionError(
            f"run_performer was given {performer!r}, which is no performer.",
            remedy="Give what @app.performer or @app.scheduled made of your function, or app.performers[binding].",
            field="performer",
        )
    origin = None if scheduled_at is None else Origin(schedule, to_epoch_ms(scheduled_at, name="scheduled_at"))
    new = performer.tick_job(payload, origin or Origin(schedule, 0), performer.options)
    loop = VirtualLoop()
    runtime = VirtualRuntime(
        loop,
        VirtualClock(loop, 0 if origin is None else origin.scheduled_at),
        SeededEntropy(seed),
        ProcessIdentity("world", "boot", "namespace", 1, "start"),
    )
    job_id = f"{performer.binding}#0:test"
    options = performer.options
    job = ClaimedJob(
        1, 1, new.app, job_id, new.binding, new.payload, attempt, options.max_attempts, 0, 0, options, origin, 0
    )
    context = JobContext(job, SqliteStore(":memory:", runtime), runtime, "test")
    try:
        return cast("R", loop.run_until_complete(_call(performer, context)))
    finally:
        loop.close()


async def _call(performer: Performer[Any, Any], context: JobContext) -> object:
    enter(context)
    result: Any = performer.call(context.job.payload, context)
    return await result if performer.is_async else result
