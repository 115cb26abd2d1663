"""Jobs that come over HTTP: their shape, and the same checks as for everybody else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from kizami.app.client_jobs import job_of
from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.states import JobState
from kizami.core.times import to_datetime

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.store.protocol import NewJob

_AS_IS: Final = ("priority", "max_attempts", "guarantee", "concurrency_key", "unique_key", "partition_key")
_LENGTHS: Final = {"timeout_ms": "timeout", "unique_for_ms": "unique_for", "delay_ms": "delay"}
_MOST_MS: Final = 10 * 366 * 86_400_000


class JobRequest(BaseModel):
    """A job to be enqueued: what isn't given comes from the performer where its code is here, else from Kizami."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    binding: StrictStr
    payload: Any = None
    priority: StrictInt | None = None
    max_attempts: StrictInt | None = None
    timeout_ms: StrictInt | None = None
    guarantee: StrictStr | None = None
    concurrency_key: StrictStr | None = None
    unique_key: StrictStr | None = None
    unique_for_ms: StrictInt | None = None
    partition_key: StrictStr | None = None
    delay_ms: StrictInt | None = None
    run_at: StrictInt | None = None


class JobAdded(BaseModel):
    """The id of a job. `existing`: nothing was added, since its unique_key is reserved by that job, now in `state`."""

    job_id: str
    existing: bool
    state: JobState | None


async def requested(app: Kizami, request: JobRequest) -> NewJob:
    """Return the job that a request asks for. Raises InvalidInputError and its kinds, NotFoundError."""
    options = _options(request)
    try:
        performer = app.performers.get(request.binding)
        if performer is not None:
            return performer.job(request.payload, **options).new
        stored = {each.declared.name: each for each in await app.bindings.list()}
        return job_of(stored, app.name, request.binding, request.payload, options, app.runtime)
    except DefinitionError as error:  # here, an option is an input
        path = error.facts.get("field")
        raise InvalidInputError(error.message, remedy=error.remedy, path=path) from error


def _options(request: JobRequest) -> Any:
    """Return the options as an enqueue in Python takes them."""
    given: dict[str, Any] = {name: getattr(request, name) for name in _AS_IS}
    for name, option in _LENGTHS.items():
        length = getattr(request, name)
        if length is not None and abs(length) > _MOST_MS:
            raise InvalidInputError(f"{name} is {length}.", remedy=f"Give at most {_MOST_MS}.", path=name)
        given[option] = None if length is None else timedelta(milliseconds=length)
    given["run_at"] = None if request.run_at is None else to_datetime(request.run_at, name="run_at")
    return {name: value for name, value in given.items() if value is not None}
