"""Messages and channels as Slack gives them back, which is not as they were sent.

Bare addresses become links, defaults are filled in, blocks get an id. Whoever compares what comes back with what they
sent finds a difference here too.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from kizami.sandbox.escaping import stored_mrkdwn
from kizami.sandbox.workspace import Channel, Content, Message

TEAM_ID = "T0SANDBOX"
_BARE_ADDRESS = re.compile(r"(?<![<|\w])https?://[^\s<>|]+")
_DEFAULTS = {"plain_text": ("emoji", True), "mrkdwn": ("verbatim", False)}


def shown_message(message: Message, *, with_payload: bool = True) -> dict[str, Any]:
    """Return a message as an answer carries it; without `with_payload` only the metadata's type is told."""
    shown: dict[str, Any] = {
        "type": "message",
        "user": message.bot.user_id,
        "ts": message.ts,
        "text": _linked(stored_mrkdwn(message.content.text)),
        "team": TEAM_ID,
    }
    if message.bot.bot_id:
        shown |= {"bot_id": message.bot.bot_id, "app_id": message.bot.app_id}
    if message.thread_ts is not None:
        shown["thread_ts"] = message.thread_ts
    if message.shows_edited:
        shown["edited"] = {"user": message.bot.user_id, "ts": message.edited_ts}
    return shown | _parts(message.content, with_payload=with_payload)


def shown_channel(channel: Channel, user_id: str, *, with_members: bool = False) -> dict[str, Any]:
    """Return a channel as an answer carries it."""
    shown: dict[str, Any] = {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private,
        "is_im": False,
        "is_mpim": False,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_member": user_id in channel.members,
        "is_general": False,
        "is_shared": False,
        "context_team_id": TEAM_ID,
        "topic": {"value": "", "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
    }
    return shown | ({"num_members": len(channel.members)} if with_members else {})


def _parts(content: Content, *, with_payload: bool) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if content.blocks:
        parts["blocks"] = [_shown_block(block, index) for index, block in enumerate(content.blocks)]
    if content.attachments:
        parts["attachments"] = [{"id": index, **entry} for index, entry in enumerate(content.attachments, start=1)]
    if content.metadata:
        parts["metadata"] = content.metadata if with_payload else {"event_type": content.metadata["event_type"]}
    return parts


def _shown_block(block: dict[str, Any], index: int) -> dict[str, Any]:
    made_up = hashlib.sha256(f"{index}{block!r}".encode("utf-8", "replace")).hexdigest()[:5]
    filled: dict[str, Any] = _filled(block)
    return {"block_id": made_up, **filled}


def _filled(node: Any) -> Any:
    if isinstance(node, list):
        return [_filled(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    filled = {name: _filled(value) for name, value in node.items()}
    default = _DEFAULTS.get(str(node.get("type")))
    return filled if default is None else {default[0]: default[1], **filled}


def _linked(text: str) -> str:
    return _BARE_ADDRESS.sub(lambda address: f"<{address[0]}>", text)
