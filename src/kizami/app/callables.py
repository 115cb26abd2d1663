"""What kind of function a performer is: the one place that tells async from sync, and refuses what is neither."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from kizami.core.errors import DefinitionError


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether calling it gives something to await.

    Sees through partials, bound methods, objects with `__call__`, and decorators that used functools.wraps.
    """
    return any(inspect.iscoroutinefunction(layer) for layer in _layers(function))


def plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function under partials and objects with `__call__`: the one that has the annotations."""
    found: Any = function
    while isinstance(found, staticmethod) or not (inspect.isroutine(found) or isinstance(found, type)):
        match found:
            case staticmethod():
                found = found.__func__
            case functools.partial():
                found = found.func
            case _:
                found = found.__call__
    return found


def refuse_generators(owner: str, function: Callable[..., object]) -> None:
    """Raise DefinitionError for what can't be a performer: a generator's body would never run."""
    if isinstance(function, classmethod | property):
        raise DefinitionError(
            f"{owner} is a {type(function).__name__} that no class has bound yet.",
            remedy="Decorate the class, or pass the bound method: app.performer(Class.method).",
            field="function",
        )
    plain = plain_function(function)
    kinds = ((inspect.isasyncgenfunction, "an async generator"), (inspect.isgeneratorfunction, "a generator"))
    for is_kind, kind in kinds:
        if is_kind(plain):
            raise DefinitionError(
                f"{owner} is {kind} function: calling it runs nothing.",
                remedy="Return a value instead of using yield; report progress with ctx.heartbeat.",
                field="function",
            )


def body_of(owner: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what jobs call: the function, or the `perform` of a class, which is made once. Raises DefinitionError."""
    if not isinstance(function, type):
        return function
    if not callable(getattr(function, "perform", None)):
        raise DefinitionError(
            f"{owner}: class {function.__name__} has no method perform.", remedy="Add one.", field="perform"
        )
    try:
        made = function()
    except TypeError as error:
        raise DefinitionError(
            f"{owner}: class {function.__name__} can't be made without arguments ({error}).",
            remedy="Give its parameters defaults; what a job needs belongs into its payload.",
            field="perform",
        ) from error
    return made.perform  # type: ignore[no-any-return]  # callable was asked above


def _layers(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """Yield the function and what each of its decorators wraps."""
    layer: object = function
    for _ in range(100):  # a decorator may, by mistake, wrap itself
        plain = plain_function(layer)  # type: ignore[arg-type]  # what functools.wraps names is callable
        yield plain
        layer = getattr(plain, "__wrapped__", None)
        if not callable(layer):
            return
