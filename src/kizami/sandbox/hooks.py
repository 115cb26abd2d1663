"""Lets a test stand between the arrival of a call, its acceptance and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from kizami.sandbox.arguments import Arguments
from kizami.sandbox.log import Entry
from kizami.sandbox.workspace import Bot


class Phase(StrEnum):
    """The two moments of a call at which hooks are called."""

    RECEIVED = "received"
    """The request is in, nothing of it is accepted."""
    ACCEPTED = "accepted"
    """What it asks for is stored and logged, nothing is answered."""


@dataclass(slots=True)
class Call:
    """One authenticated call on its way; `entry` is there from its acceptance on."""

    method: str
    channel: str
    arguments: Arguments
    bot: Bot
    warnings: tuple[str, ...] = ()
    entry: Entry | None = None
    is_dropped: bool = False

    def drop(self) -> None:
        """Close the connection when the hook returns: nothing is accepted any more, and nothing answered."""
        self.is_dropped = True


Hook = Callable[[Call], Awaitable[None]]


@dataclass(slots=True)
class Hooks:
    """The hooks of a sandbox."""

    _hooks: list[tuple[Phase, str | None, str | None, Hook]] = field(default_factory=list)

    def add(
        self, phase: Phase, hook: Hook, *, method: str | None = None, channel: str | None = None
    ) -> Callable[[], None]:
        """Call `hook` for every call that reaches the phase, of a method and a channel if they are named.

        The call waits until the hook returns. Returns what takes the hook away again.
        """
        entry = (phase, method, channel, hook)
        self._hooks.append(entry)
        return lambda: self._hooks.remove(entry)

    async def reach(self, phase: Phase, call: Call) -> None:
        """Call the hooks of a phase, one after the other, in the order in which they were added."""
        for when, method, channel, hook in tuple(self._hooks):
            if when == phase and method in {None, call.method} and channel in {None, call.channel}:
                await hook(call)
