"""What the sandbox remembers: bots, channels and messages. No IO, no clock: the time comes in with each change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import BotSeed, ChannelSeed, SandboxSettings, TokenState

_MICROSECONDS = 1_000_000
_TS = re.compile(r"\d{1,11}\.\d{6}", re.ASCII)
_INSTANT = re.compile(r"(\d{1,11})(?:\.(\d{1,6}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot user of one app, identified by its token."""

    token: str
    name: str
    user_id: str
    bot_id: str
    app_id: str
    scopes: frozenset[str]
    state: TokenState

    @classmethod
    def of(cls, seed: BotSeed) -> Bot:
        """Return the bot of a seed; its ids are made from its name."""
        tail = "0" + re.sub(r"[^A-Z0-9]", "", seed.name.upper())[:9]
        return cls(seed.token, seed.name, f"U{tail}", f"B{tail}", f"A{tail}", seed.scopes, seed.state)


PERSON = Bot("", "somebody", "U0SOMEBODY", "", "", frozenset(), TokenState.ACTIVE)
"""Who writes when it is not a bot."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says, exactly as it was sent."""

    text: str = ""
    blocks: tuple[dict[str, Any], ...] = ()
    attachments: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One version of a message. `posted_ms` is sandbox time, `ts` is the wall's; `edited_ts` is the last edit's."""

    channel: str
    ts: str
    bot: Bot
    content: Content
    posted_ms: int
    thread_ts: str | None = None
    is_broadcast: bool = False
    edits: int = 0
    edited_ts: str | None = None
    shows_edited: bool = False

    @property
    def is_reply(self) -> bool:
        """Whether the message is a reply in a thread."""
        return self.thread_ts is not None and self.thread_ts != self.ts


@dataclass(slots=True)
class Channel:
    """A channel and its messages, in the order of their ts."""

    id: str
    name: str
    is_private: bool = False
    is_archived: bool = False
    members: set[str] = field(default_factory=set)
    messages: dict[str, Message] = field(default_factory=dict)
    last_instant: int = 0
    """Microseconds of the newest ts ever given out here, so that none is given out twice."""

    def next_ts(self, wall_ms: int) -> str:
        """Return a ts that is above all before it, whatever the wall clock did."""
        self.last_instant = max(wall_ms * 1_000, self.last_instant + 1)
        return as_ts(self.last_instant)

    def newest_first(self) -> Iterator[Message]:
        """Yield what a reader of the channel sees: replies stay in their thread unless they were broadcast."""
        return (message for message in reversed(self.messages.values()) if not message.is_reply or message.is_broadcast)


class Workspace:
    """The channels and bots of one workspace."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.bots = {bot.token: bot for bot in map(Bot.of, settings.bots)}
        self.channels: dict[str, Channel] = {}
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Go back to the channels of the settings, all empty. No ts is given out again."""
        wanted = {seed.id for seed in self._settings.channels}
        self.channels = {key: channel for key, channel in self.channels.items() if key in wanted}
        for seed in self._settings.channels:
            self.add_channel(seed).messages.clear()

    def add_channel(self, seed: ChannelSeed) -> Channel:
        """Add a channel, or change the one with this id and keep its messages."""
        channel = self.channels.setdefault(seed.id, Channel(seed.id, seed.name))
        channel.name, channel.is_private, channel.is_archived = seed.name, seed.is_private, seed.is_archived
        channel.members = {bot.user_id for bot in self.bots.values()} if seed.is_member else set()
        return channel

    def channel(self, channel_id: str) -> Channel:
        """Return a channel; raises RefusedError channel_not_found."""
        try:
            return self.channels[channel_id]
        except KeyError:
            raise RefusedError("channel_not_found") from None

    def named(self, name: str) -> Channel | None:
        """Return the public channel of that name, with or without its hash sign."""
        wanted = name.removeprefix("#")
        return next((c for c in self.channels.values() if c.name == wanted and not c.is_private), None)

    def message(self, channel_id: str, ts: str) -> Message:
        """Return a message; raises RefusedError message_not_found unless ts is exactly the one that was given out."""
        message = self.channel(channel_id).messages.get(ts) if _TS.fullmatch(ts) else None
        if message is None:
            raise RefusedError("message_not_found")
        return message

    def messages(self, channel_id: str) -> Sequence[Message]:
        """Return the messages of a channel, oldest first, thread replies included."""
        return list(self.channel(channel_id).messages.values())

    def post(self, channel: Channel, draft: Message, wall_ms: int) -> Message:
        """Store a message under a new ts and return it; the oldest one of a full channel vanishes."""
        message = replace(draft, channel=channel.id, ts=channel.next_ts(wall_ms))
        channel.messages[message.ts] = message
        if len(channel.messages) > self._settings.messages_kept:
            del channel.messages[next(iter(channel.messages))]
        return message

    def edit(self, message: Message, content: Content, wall_ms: int, *, shows_edited: bool) -> Message:
        """Replace what a message says and return the new version; its ts stays."""
        edited = replace(
            message,
            content=content,
            edits=message.edits + 1,
            edited_ts=as_ts(wall_ms * 1_000),
            shows_edited=shows_edited,
        )
        self.channel(message.channel).messages[message.ts] = edited
        return edited

    def delete(self, channel_id: str, ts: str) -> Message:
        """Remove a message and return it: a person or a retention rule may, whoever wrote it."""
        message = self.message(channel_id, ts)
        del self.channel(channel_id).messages[ts]
        return message


def as_ts(microseconds: int) -> str:
    """Return an instant as Slack writes it."""
    return f"{microseconds // _MICROSECONDS}.{microseconds % _MICROSECONDS:06d}"


def instant(text: str, error: str) -> int:
    """Return the microseconds of a ts or of Unix seconds; raises RefusedError with `error` for anything else."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise RefusedError(error)
    return int(match[1]) * _MICROSECONDS + int((match[2] or "").ljust(6, "0"))
