"""`@app.performer`, typed so that every enqueue knows the payload of its performer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, Unpack, overload

from kizami.app.performer import Performer
from kizami.core.options import PerformerChanges
from kizami.engine.context import JobContext

P = TypeVar("P")
R = TypeVar("R")


class HasPerform(Protocol):
    """A class whose `perform` does jobs."""

    @property
    def perform(self) -> Callable[..., Any]:
        """Do one job."""
        ...


@dataclass(frozen=True, slots=True)
class PerformerDecorator:
    """Registers a performer, as a decorator with or without arguments; its binding is the function's name.

    A class is made once and its `perform` called. A sync performer is called in a thread, or with `runs_in="process"`
    in a child process, which is killed at the deadline. Raises DefinitionError.
    """

    add: Callable[[Callable[..., Any], str | None, dict[str, Any]], Performer[Any, Any]]
    binding: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    # The order matters: the first that fits wins, a coroutine is a result too, and a class is also a function.
    @overload
    def __call__(self, function: type[HasPerform], /) -> Performer[Any, Any]: ...
    @overload
    def __call__(self, function: Callable[[], Coroutine[Any, Any, R]], /) -> Performer[None, R]: ...
    @overload
    def __call__(self, function: Callable[[JobContext], Coroutine[Any, Any, R]], /) -> Performer[None, R]: ...
    @overload
    def __call__(self, function: Callable[[P], Coroutine[Any, Any, R]], /) -> Performer[P, R]: ...  # type: ignore[overload-overlap]  # by order: an argument of JobContext is the context
    @overload
    def __call__(self, function: Callable[[P, JobContext], Coroutine[Any, Any, R]], /) -> Performer[P, R]: ...
    @overload
    def __call__(self, function: Callable[[], R], /) -> Performer[None, R]: ...
    @overload
    def __call__(self, function: Callable[[JobContext], R], /) -> Performer[None, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R], /) -> Performer[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, JobContext], R], /) -> Performer[P, R]: ...
    @overload
    def __call__(
        self,
        *,
        binding: str | None = None,
        runs_in: Literal["thread", "process"] = "thread",
        **options: Unpack[PerformerChanges],
    ) -> PerformerDecorator: ...
    def __call__(  # type: ignore[misc]  # mypy can't match Unpack in an implementation with its overload
        self, function: Callable[..., Any] | None = None, /, *, binding: str | None = None, **options: Any
    ) -> Any:
        """Register the function, or return a decorator with these options."""
        if function is None:
            return PerformerDecorator(self.add, binding, options)
        return self.add(function, self.binding if binding is None else binding, {**self.options, **options})
