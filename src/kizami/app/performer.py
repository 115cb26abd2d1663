"""A registered performer: typed enqueueing on one side, the engine's call on the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from kizami.app.in_process import InProcess, Place
from kizami.app.signature import Signature, read_signature
from kizami.app.tick import Tick
from kizami.core.errors import DefinitionError
from kizami.core.options import EnqueueChanges, JobOptions, split_enqueue
from kizami.core.sharding import place
from kizami.core.zone import load_zone
from kizami.engine.context import JobContext
from kizami.engine.performing import RunsIn
from kizami.runtime import sortable_id
from kizami.store.protocol import BindingDeclaration, ClaimedJob, NewJob, Origin

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.core.states import JobState
    from kizami.core.zone import TimeZone
    from kizami.store.protocol import Enqueued

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job ready to be enqueued, made by `Performer.job`."""

    new: NewJob


class JobId(str):  # noqa: SLOT000 - a str can't have slots with values
    """The id of an enqueued job, and whether it was there before.

    `existing` tells that nothing was added, since the job's unique_key is reserved: the id and `state` are those of the
    job that has it (None: it has been removed, its reservation lives on).
    """

    existing: bool
    state: JobState | None

    def __new__(cls, answer: Enqueued) -> Self:
        """Return the id that a store's answer names."""
        made = super().__new__(cls, answer.job_id)
        made.existing, made.state = answer.existing, answer.state
        return made


class Performer(Generic[P, R]):
    """A function (or class with `perform`) that does jobs, under the name of its binding."""

    def __init__(
        self,
        app: Kizami,
        binding: str,
        function: Callable[..., object],
        options: JobOptions,
        declaration: BindingDeclaration,
        place: Place | None = None,
    ) -> None:
        self._app = app
        self.binding = binding
        self.options = options
        self._owner = f"Performer {binding}"
        self._function = function
        self._signature: Signature = read_signature(self._owner, function)
        from kizami.core.payloads import PayloadType  # noqa: PLC0415 - it loads pydantic's machinery

        self._type = PayloadType(self._owner, self._signature.payload_annotation)
        self._declaration = declaration
        self._zones: dict[str, TimeZone] = {}
        self._place = place
        self.runs_in: RunsIn = "process" if place else "loop" if self._signature.is_async else "thread"

    @property
    def is_async(self) -> bool:
        """Tell whether calling it gives something to await."""
        return self._signature.is_async

    @property
    def place(self) -> Place | None:
        """Return where a child process finds the function; None for one that runs in no child process."""
        return self._place

    def is_made_of(self, found: object) -> bool:
        """Tell whether this performer calls that function, or an object of that class."""
        made = getattr(self._function, "__self__", None)
        return found == self._function or (isinstance(found, type) and isinstance(made, found))

    @cached_property
    def declaration(self) -> BindingDeclaration:
        """Return what the store is told of this performer's binding."""
        return replace(self._declaration, payload_schema=self._type.schema())

    @property
    def takes_tick(self) -> bool:
        """Tell whether the function wants the tick, and so only works on a schedule."""
        return self._signature.tick is not None

    @property
    def takes_payload(self) -> bool:
        """Tell whether the function wants a payload."""
        return self._signature.payload is not None

    def job(self, payload: P = None, **options: Unpack[EnqueueChanges]) -> JobRequest:  # type: ignore[assignment]  # a performer without payload needs no argument
        """Return a job request for `Kizami.enqueue_many`. Raises PayloadError, DefinitionError."""
        if self.takes_tick:
            raise DefinitionError(
                f"{self._owner} takes a Tick, so it only runs on a schedule.",
                remedy="Trigger its schedule, or take a payload instead of the tick.",
            )
        local_id = sortable_id(self._app.runtime.clock, self._app.runtime.entropy)
        return JobRequest(self._new_job(local_id, payload, options, None))

    async def enqueue(
        self,
        payload: P = None,  # type: ignore[assignment]  # as above
        *,
        connection: object = None,
        **options: Unpack[EnqueueChanges],
    ) -> JobId:
        """Add a job durably; return its id, which says whether the job was there already.

        With `connection`, the caller's own to the same database (psycopg, SQLAlchemy, sqlite3), the job exists iff its
        transaction commits. Raises OtherDatabaseError, WrongStateError for a connection without a transaction.

        Raises InvalidInputError where its keys don't fit the binding, PayloadError, DefinitionError, StoreError.
        """
        return (await self._app.enqueue_many([self.job(payload, **options)], connection=connection))[0]

    def tick_job(self, payload: object, origin: Origin, options: JobOptions) -> NewJob:
        """Return the job of a tick. Raises PayloadError."""
        text = self._type.encode(payload)
        return NewJob(self._app.name, self.binding, "", text, options, origin=origin, declaration=self.declaration)

    def meaning(self, payload: object) -> str:
        """Return what of a schedule's payload belongs to its definition: a value whole, a function by its name.

        Every process gives the same text for the same code. Raises PayloadError.
        """
        if isinstance(payload, functools.partial):
            return self.meaning(payload.func)
        if callable(payload):
            return f"function {getattr(payload, '__qualname__', type(payload).__qualname__)}"
        return self._type.meaning(payload)

    def check_options(self, owner: str, options: dict[str, Any]) -> JobOptions:
        """Return the options of a schedule's jobs. Raises DefinitionError naming the schedule."""
        return self.options.changed(owner, options)  # type: ignore[arg-type]  # unknown names are refused inside

    def work_for(self, job: ClaimedJob) -> InProcess:
        """Return how a child process performs a job. Only for performers that run in one."""
        if self._place is None:
            raise DefinitionError(f"{self._owner} runs in no child process.")
        zone = self._app.zone_of(job.origin.schedule) if job.origin and self.takes_tick else None
        return InProcess(self.binding, self._place, zone.name if zone else None)

    def call(self, payload: str, context: JobContext, zone: TimeZone | None = None) -> object:
        """Call the user's function. Raises PayloadError when the stored payload doesn't fit any more.

        `zone` is that of the tick, where the app at hand doesn't know its schedule.
        """
        arguments: dict[str, object] = {}
        if self._signature.payload is not None:
            arguments[self._signature.payload] = self._type.decode(payload)
        if self._signature.context is not None:
            arguments[self._signature.context] = context
        if self._signature.tick is not None:
            arguments[self._signature.tick] = self._tick(context, zone)
        return self._function(**arguments)

    def _new_job(self, local_id: str, payload: object, options: EnqueueChanges, origin: Origin | None) -> NewJob:
        changes, first_due = split_enqueue(self._owner, options)
        checked = self.options.changed(self._owner, changes)
        text = self._type.encode(payload)
        place(self.declaration, checked)  # refused here, where the caller stands
        return NewJob(self._app.name, self.binding, local_id, text, checked, first_due, origin, self.declaration)

    def _tick(self, context: JobContext, zone: TimeZone | None) -> Tick:
        origin = context.job.origin
        if origin is None:
            raise DefinitionError(f"{self._owner} takes a Tick, but job {context.job_id} has none.")
        known = zone or self._app.zone_of(origin.schedule) or load_zone("UTC")
        return Tick(origin.schedule, origin.scheduled_at, known, origin.manual)
