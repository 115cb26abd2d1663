"""A registered performer: typed enqueueing on one side, the engine's call on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from kizami.app.signature import Signature, read_signature
from kizami.app.tick import Tick
from kizami.core.errors import DefinitionError
from kizami.core.options import EnqueueChanges, JobOptions, split_enqueue
from kizami.core.sharding import place
from kizami.core.zone import load_zone
from kizami.engine.context import JobContext
from kizami.runtime import sortable_id
from kizami.store.protocol import BindingDeclaration, NewJob, Origin

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
        self.is_async = self._signature.is_async

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
        """Return a job request for `Kizami.enqueue_many`. Raises PayloadError, DefinitionError, UnsupportedError."""
        if self.takes_tick:
            raise DefinitionError(
                f"{self._owner} takes a Tick, so it only runs on a schedule.",
                remedy="Trigger its schedule, or take a payload instead of the tick.",
            )
        local_id = sortable_id(self._app.runtime.clock, self._app.runtime.entropy)
        return JobRequest(self._new_job(local_id, payload, options, None))

    async def enqueue(self, payload: P = None, **options: Unpack[EnqueueChanges]) -> JobId:  # type: ignore[assignment]  # as above
        """Add a job durably; return its id, which says whether the job was there already.

        Raises InvalidInputError where its keys don't fit the binding, PayloadError, DefinitionError, UnsupportedError,
        StoreError.
        """
        return (await self._app.enqueue_many([self.job(payload, **options)]))[0]

    def tick_job(self, payload: object, origin: Origin, options: JobOptions) -> NewJob:
        """Return the job of a tick. Raises PayloadError."""
        text = self._type.encode(payload)
        return NewJob(self._app.name, self.binding, "", text, options, origin=origin, declaration=self.declaration)

    def check_options(self, owner: str, options: dict[str, Any]) -> JobOptions:
        """Return the options of a schedule's jobs. Raises DefinitionError naming the schedule."""
        return self.options.changed(owner, options)  # type: ignore[arg-type]  # unknown names are refused inside

    def call(self, payload: str, context: JobContext) -> object:
        """Call the user's function. Raises PayloadError when the stored payload doesn't fit any more."""
        arguments: dict[str, object] = {}
        if self._signature.payload is not None:
            arguments[self._signature.payload] = self._type.decode(payload)
        if self._signature.context is not None:
            arguments[self._signature.context] = context
        if self._signature.tick is not None:
            arguments[self._signature.tick] = self._tick(context)
        return self._function(**arguments)

    def _new_job(self, local_id: str, payload: object, options: EnqueueChanges, origin: Origin | None) -> NewJob:
        changes, first_due = split_enqueue(self._owner, options)
        checked = self.options.changed(self._owner, changes)
        text = self._type.encode(payload)
        place(self.declaration, checked)  # refused here, where the caller stands
        return NewJob(self._app.name, self.binding, local_id, text, checked, first_due, origin, self.declaration)

    def _tick(self, context: JobContext) -> Tick:
        origin = context.job.origin
        if origin is None:
            raise DefinitionError(f"{self._owner} takes a Tick, but job {context.job_id} has none.")
        zone = self._app.zone_of(origin.schedule) or load_zone("UTC")
        return Tick(origin.schedule, origin.scheduled_at, zone, origin.manual)
