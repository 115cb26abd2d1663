"""Performers that run in a child process: how the child finds them, and what is refused because it couldn't."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kizami.app.callables import body_of, is_async
from kizami.core.errors import DefinitionError
from kizami.core.options import JobOptions
from kizami.core.zone import load_zone
from kizami.engine.context import JobContext

if TYPE_CHECKING:
    from kizami.app.performer import Performer


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function or class stands: its module and its name in it, which may have dots."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def look(self) -> object:
        """Return what stands there now. Raises ImportError and AttributeError."""
        found: object = importlib.import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


@dataclass(frozen=True, slots=True)
class InProcess:
    """A performer by its place; `zone` is that of the tick that it is called for."""

    binding: str
    place: Place
    zone: str | None

    def load(self) -> Callable[[str, JobContext], object]:
        """Import the performer and return what calls it. Raises ImportError, AttributeError and DefinitionError."""
        performer = _performer(self.binding, self.place.look())
        return partial(performer.call, zone=load_zone(self.zone) if self.zone else None)


def place_of(owner: str, function: Callable[..., Any], body: Callable[..., Any], runs_in: object) -> Place | None:
    """Return where a child process will find a function; None when it is to run in a thread or on the event loop.

    Raises DefinitionError for a function that no other process could find by its name.
    """
    if runs_in in (None, "thread") and not (runs_in and is_async(body)):
        return None
    if runs_in not in ("thread", "process"):
        remedy = "Use 'thread' or 'process', or leave it out."
        raise DefinitionError(f"{owner}: runs_in is {runs_in!r}.", remedy=remedy, field="runs_in")
    if is_async(body):
        remedy = f"Remove runs_in, or make it a plain def to run it in a {runs_in}."
        raise DefinitionError(f"{owner} is async and runs on the event loop.", remedy=remedy, field="runs_in")
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    bound = getattr(function, "__self__", None)
    if not module or not name or "<" in name or not (bound is None or isinstance(bound, type)):
        raise DefinitionError(
            f"{owner}: a child process can't find {name or repr(function)} by its name.",
            remedy="Define it with def or class at the top level of a module, or use runs_in='thread'.",
            field="runs_in",
        )
    return Place(module, name)


def require_found(performer: Performer[Any, Any]) -> None:
    """Raise DefinitionError unless a performer for child processes stands where they will look for it."""
    place = performer.place
    if place is None:
        return
    try:
        found = place.look()
    except (ImportError, AttributeError) as error:
        raise _misplaced(performer.binding, place, str(error)) from error
    if found is not performer and not performer.is_made_of(found):
        raise _misplaced(performer.binding, place, f"{found!r} stands there")


def _misplaced(binding: str, place: Place, reason: str) -> DefinitionError:
    return DefinitionError(
        f"Performer {binding}: a child process looks for it at {place} and doesn't find it ({reason}).",
        remedy="Keep the name that its def gives it, or use runs_in='thread'.",
        field="runs_in",
    )


def _performer(binding: str, found: object) -> Performer[Any, Any]:
    from kizami.app.app import Kizami  # noqa: PLC0415 - the app's module imports this one
    from kizami.app.performer import Performer  # noqa: PLC0415 - as above
    from kizami.store.protocol import BindingDeclaration  # noqa: PLC0415 - as above

    if isinstance(found, Performer):
        return found
    body = body_of(f"Performer {binding}", found)  # type: ignore[arg-type]  # asked at definition
    return Performer(Kizami(), binding, body, JobOptions(), BindingDeclaration(binding))
