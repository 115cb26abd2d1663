"""Jobs from those who don't have the performers' code: checked against what workers stored of each binding."""

from __future__ import annotations

import difflib
import functools
import json
from typing import TYPE_CHECKING, Any

from kizami.core.errors import ConfigurationError, NotFoundError, PayloadError
from kizami.core.options import EnqueueChanges, JobOptions, split_enqueue
from kizami.core.payloads import PayloadType
from kizami.core.sharding import place
from kizami.runtime import sortable_id
from kizami.store.protocol import NewJob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kizami.runtime import Runtime
    from kizami.store.protocol import Binding

_SHOWN_MAX = 300


def job_of(
    stored: Mapping[str, Binding], app: str, binding: str, payload: object, options: EnqueueChanges, runtime: Runtime
) -> NewJob:
    """Return a job for a stored binding.

    Raises NotFoundError for one that no worker has stored, with the nearest names; PayloadError where the payload
    doesn't fit its JSON Schema; InvalidInputError where the keys don't fit its shards; DefinitionError for an option.
    """
    found = stored.get(binding)
    if found is None:
        raise _unknown(stored, app, binding)
    owner = f"Binding {binding}"
    changes, first_due = split_enqueue(owner, options)
    checked = JobOptions().changed(owner, changes)
    text = _type_of(owner).encode(payload)
    schema = found.declared.payload_schema
    if schema is not None and (wrong := _checker(schema)(json.loads(text))) is not None:
        path, said = wrong
        where = f" at {path}" if path else ""
        raise PayloadError(
            f"{owner}: the payload doesn't fit{where}: {said}.",
            remedy="Give what its performer's type says; the JSON Schema is that of its workers.",
            path=path,
        )
    place(found.declared, checked)
    return NewJob(app, binding, sortable_id(runtime.clock, runtime.entropy), text, checked, first_due)


def _unknown(stored: Mapping[str, Binding], app: str, binding: str) -> NotFoundError:
    near = difflib.get_close_matches(binding, stored, n=3, cutoff=0.6)
    known = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(sorted(stored)[:10]) or 'none yet'}."
    return NotFoundError(
        f"App {app} has no binding {binding}.",
        remedy=f"{known} A worker stores its bindings when it starts.",
        binding=binding,
    )


@functools.lru_cache(maxsize=256)
def _type_of(owner: str) -> PayloadType:
    return PayloadType(owner, Any)


@functools.lru_cache(maxsize=256)
def _checker(schema: str) -> Callable[[object], tuple[str, str] | None]:
    """Return what tells where and why a payload doesn't fit. Raises ConfigurationError."""
    try:
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - only those who enqueue without the code need it
        from jsonschema.exceptions import best_match  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ConfigurationError(
            "Enqueueing without the performers' code needs jsonschema, which isn't installed here.",
            remedy="Install kizami[client].",
        ) from error
    validator = Draft202012Validator(json.loads(schema))

    def check(payload: object) -> tuple[str, str] | None:
        wrong = best_match(validator.iter_errors(payload))
        if wrong is None:
            return None
        return ".".join(map(str, wrong.absolute_path)), wrong.message[:_SHOWN_MAX].rstrip(".")

    return check
