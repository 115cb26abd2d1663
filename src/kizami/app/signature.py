"""Reading a performer's signature: which parameter takes the payload, the context, the tick."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kizami.app.callables import is_async, plain_function, refuse_generators
from kizami.app.tick import Tick
from kizami.core.errors import DefinitionError
from kizami.engine.context import JobContext

BY_NAME: Final[Mapping[str, type]] = {"tick": Tick, "ctx": JobContext}
"""What parameters without an annotation get by their name; all others are the payload."""


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
    refuse_generators(owner, function)
    hints = _hints(owner, plain_function(function))
    payload: list[str] = []
    found: dict[type, str] = {}
    for name, parameter in _parameters(owner, function).items():
        _require_fillable(owner, name, parameter)
        annotation = hints.get(name, BY_NAME.get(name))
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
    return Signature(name_of, found.get(JobContext), found.get(Tick), annotation, is_async(function))


def require_takes(owner: str, function: Callable[..., object], field: str, *arguments: str) -> None:
    """Raise DefinitionError unless a function can be called with these arguments, by place."""
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError as error:
        raise DefinitionError(
            f"{owner}: its parameters can't be read ({error}).",
            remedy="Wrap it in a function of your own.",
            field=field,
        ) from error
    except TypeError as error:
        given = " and ".join(arguments)
        raise DefinitionError(
            f"{owner} can't be called with {given} alone ({error}).",
            remedy=f"Let it take {given}, and give further parameters defaults.",
            field=field,
        ) from error


def _parameters(owner: str, function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError) as error:
        raise DefinitionError(
            f"{owner}: its parameters can't be read ({error}).",
            remedy="Wrap it in a function of your own with named parameters.",
            field="function",
        ) from error


def _require_fillable(owner: str, name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise DefinitionError(f"{owner}: parameter *{name} can't be filled.", remedy="Name the parameters.", field=name)
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise DefinitionError(
            f"{owner}: parameter {name} is positional-only, and parameters are filled by name.",
            remedy="Remove the slash from its parameters.",
            field=name,
        )


def _hints(owner: str, function: Callable[..., object]) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise DefinitionError(
            f"{owner}: its annotations can't be read ({error}).",
            remedy="Import the annotated types at run time and define them at module level.",
        ) from error
