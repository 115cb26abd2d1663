"""Reading a performer's signature: which parameter takes the payload, the context, the tick."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass

from kizami.app.tick import Tick
from kizami.core.errors import DefinitionError
from kizami.engine.context import JobContext


@dataclass(frozen=True, slots=True)
class Signature:
    """How to call a performer. Names of parameters, None where the function has no such one."""

    payload: str | None
    context: str | None
    tick: str | None
    payload_annotation: object
    is_async: bool


def read_signature(owner: str, function: Callable[..., object]) -> Signature:
    """Return a function's signature as Kizami calls it. Raises DefinitionError."""
    hints = _hints(owner, function)
    payload: list[str] = []
    found: dict[type, str] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DefinitionError(
                f"{owner}: parameter *{name} can't be filled.", remedy="Name the parameters.", field=name
            )
        annotation = hints.get(name)
        if annotation in (JobContext, Tick):
            found[typing.cast("type", annotation)] = name
        elif parameter.default is parameter.empty:
            payload.append(name)
    if len(payload) > 1:
        raise DefinitionError(
            f"{owner}: parameters {', '.join(payload)} can't all be the payload.",
            remedy="Take one payload, and annotate the others with JobContext or Tick.",
            field=payload[1],
        )
    name_of = payload[0] if payload else None
    annotation = hints.get(name_of, typing.Any) if name_of else type(None)
    return Signature(name_of, found.get(JobContext), found.get(Tick), annotation, inspect.iscoroutinefunction(function))


def _hints(owner: str, function: Callable[..., object]) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise DefinitionError(
            f"{owner}: its annotations can't be read ({error}).",
            remedy="Import the annotated types at run time and define them at module level.",
        ) from error
