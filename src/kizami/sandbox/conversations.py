"""The methods conversations.*, and auth.test."""

from __future__ import annotations

import base64
import binascii
from itertools import islice
from typing import Any

from kizami.sandbox.arguments import Arguments
from kizami.sandbox.callers import Caller, Result
from kizami.sandbox.echo import TEAM_ID, shown_channel, shown_message
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.workspace import Channel, instant

_HISTORY_DEFAULT = 100
_HISTORY_MAX = 999
_LIST_DEFAULT = 100
_LIST_MAX = 999
_TYPES = frozenset({"public_channel", "private_channel", "mpim", "im"})
_END_OF_TIME = "99999999999"
_MESSAGE_CURSOR = "next_ts"
_CHANNEL_CURSOR = "team"


def auth_test(caller: Caller, arguments: Arguments) -> Result:
    """auth.test: who the token is."""
    del arguments
    bot = caller.bot
    identity = {"user": bot.name, "user_id": bot.user_id, "bot_id": bot.bot_id, "is_enterprise_install": False}
    return Result({"url": f"{caller.address}/", "team": caller.settings.team, "team_id": TEAM_ID, **identity})


def history(caller: Caller, arguments: Arguments) -> Result:
    """conversations.history: newest first; without include_all_metadata the payloads are withheld."""
    channel = caller.visible(arguments.required("channel"))
    caller.require("groups:history" if channel.is_private else "channels:history")
    caller.joined(channel.id)
    limit = _history_limit(caller, arguments)
    oldest, latest = _bounds(arguments)
    found = list(islice((m for m in channel.newest_first() if oldest < instant(m.ts, "") < latest), limit + 1))
    page, has_more = found[:limit], len(found) > limit
    with_payload = arguments.flag("include_all_metadata")
    answer: dict[str, Any] = {
        "messages": [shown_message(message, with_payload=with_payload) for message in page],
        "has_more": has_more,
        "pin_count": 0,
    }
    if has_more:
        answer["response_metadata"] = {"next_cursor": _cursor(_MESSAGE_CURSOR, page[-1].ts)}
    first = instant(page[-1].ts, "") if has_more else oldest + 1
    return Result(answer, span=(first, latest - 1))


def info(caller: Caller, arguments: Arguments) -> Result:
    """conversations.info."""
    channel = caller.visible(arguments.required("channel"))
    caller.require(_reading(channel))
    with_members = arguments.flag("include_num_members")
    return Result({"channel": shown_channel(channel, caller.bot.user_id, with_members=with_members)})


def join(caller: Caller, arguments: Arguments) -> Result:
    """conversations.join: public channels only; being in already is a success with a warning."""
    caller.require("channels:join")
    channel = caller.visible(arguments.required("channel"))
    if channel.is_private:
        raise RefusedError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise RefusedError("is_archived")
    was_in = caller.is_in(channel)
    channel.members.add(caller.bot.user_id)
    answer = {"channel": shown_channel(channel, caller.bot.user_id)}
    return Result(answer, ("already_in_channel",)) if was_in else Result(answer, (), "join")


def list_channels(caller: Caller, arguments: Arguments) -> Result:
    """conversations.list: the channels that the bot can see, by id."""
    types = set((arguments.text("types") or "public_channel").split(","))
    if not types <= _TYPES:
        raise RefusedError("invalid_types")
    for kind, scope in (("public_channel", "channels:read"), ("private_channel", "groups:read")):
        if kind in types:
            caller.require(scope)
    limit = _in_range(arguments.number("limit", _LIST_DEFAULT, "invalid_limit"), _LIST_MAX)
    after = _read_cursor(_CHANNEL_CURSOR, arguments)
    without_archived = arguments.flag("exclude_archived")
    seen = [
        channel
        for channel in sorted(caller.workspace.channels.values(), key=lambda channel: channel.id)
        if channel.id > after
        and ("private_channel" if channel.is_private else "public_channel") in types
        and not (channel.is_private and not caller.is_in(channel))
        and not (channel.is_archived and without_archived)
    ]
    page = seen[:limit]
    more = _cursor(_CHANNEL_CURSOR, page[-1].id) if len(seen) > limit else ""
    shown = [shown_channel(channel, caller.bot.user_id, with_members=True) for channel in page]
    return Result({"channels": shown, "response_metadata": {"next_cursor": more}})


def _reading(channel: Channel) -> str:
    return "groups:read" if channel.is_private else "channels:read"


def _history_limit(caller: Caller, arguments: Arguments) -> int:
    settings = caller.settings
    most = settings.rates.history_limited_messages if settings.history_limited else _HISTORY_MAX
    asked = _in_range(arguments.number("limit", min(_HISTORY_DEFAULT, most), "invalid_limit"), _HISTORY_MAX)
    return min(asked, most, settings.history_page_max)


def _in_range(limit: int, most: int) -> int:
    if not 1 <= limit <= most:
        raise RefusedError("invalid_limit")
    return limit


def _bounds(arguments: Arguments) -> tuple[int, int]:
    """Return the instants between which, without themselves, a history is asked for."""
    oldest = instant(arguments.text("oldest") or "0", "invalid_ts_oldest")
    latest = instant(arguments.text("latest") or _END_OF_TIME, "invalid_ts_latest")
    if arguments.flag("inclusive"):
        oldest, latest = oldest - 1, latest + 1
    return oldest, min(latest, instant(_read_cursor(_MESSAGE_CURSOR, arguments) or _END_OF_TIME, "invalid_cursor"))


def _cursor(kind: str, position: str) -> str:
    return base64.b64encode(f"{kind}:{position}".encode()).decode()


def _read_cursor(kind: str, arguments: Arguments) -> str:
    """Return the position in a cursor, "" without one; raises RefusedError for one that was not given out."""
    text = arguments.text("cursor")
    if not text:
        return ""
    try:
        name, _, position = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise RefusedError("invalid_cursor") from None
    if name != kind or not position:
        raise RefusedError("invalid_cursor")
    return position
