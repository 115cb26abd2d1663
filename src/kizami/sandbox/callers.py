"""Who calls, and what came of it: what every method takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kizami.sandbox.content import ContentReader
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import SandboxSettings
from kizami.sandbox.workspace import Bot, Channel, Message, Workspace

Effect = Literal["post", "edit", "delete", "join"]


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of a method that said yes, and what it changed; no effect means that it only read.

    `span` is what a history showed wholly: the first and the last ts, in microseconds.
    """

    answer: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    effect: Effect | None = None
    message: Message | None = None
    span: tuple[int, int] | None = None

    def body(self) -> dict[str, Any]:
        """Return the answer as Slack words it."""
        body: dict[str, Any] = {"ok": True, **self.answer}
        if self.warnings:
            metadata = {**body.get("response_metadata", {}), "warnings": list(self.warnings)}
            body |= {"warning": ",".join(self.warnings), "response_metadata": metadata}
        return body


@dataclass(frozen=True, slots=True)
class Caller:
    """A bot in its workspace, at one moment."""

    bot: Bot
    workspace: Workspace
    reader: ContentReader
    settings: SandboxSettings
    wall_ms: int
    elapsed_ms: int
    address: str = field(default="http://sandbox.invalid")

    def require(self, scope: str) -> None:
        """Raise RefusedError missing_scope unless the token has the scope."""
        if scope not in self.bot.scopes:
            provided = ",".join(sorted(self.bot.scopes))
            raise RefusedError("missing_scope", needed=scope, provided=provided)

    def visible(self, channel_id: str) -> Channel:
        """Return a channel that the bot can see; a private one hides from whoever is not in it."""
        channel = self.workspace.channel(channel_id)
        if channel.is_private and not self.is_in(channel):
            raise RefusedError("channel_not_found")
        return channel

    def joined(self, channel_id: str) -> Channel:
        """Return a channel that the bot is in; raises RefusedError not_in_channel."""
        channel = self.visible(channel_id)
        if not self.is_in(channel):
            raise RefusedError("not_in_channel")
        return channel

    def is_in(self, channel: Channel) -> bool:
        """Return whether the bot is a member."""
        return self.bot.user_id in channel.members
