"""One post, with the key that finds it again, between the two phases at which a crash matters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import DefinitionError
from kizami.slack.client import POST
from kizami.slack.message import metadata
from kizami.slack.policy import POSTING

if TYPE_CHECKING:
    from kizami.slack.client import Slack
    from kizami.slack.message import Message

CLAIM_MS: Final = 300_000
"""How long a claim lasts from its intent on: above the longest possible call, its retries and waits included."""

_CHANNEL: Final = re.compile(r"[CGD][A-Z0-9]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that Slack accepted; `ts` is text always. `warnings` are Slack's own, or one of ours."""

    channel: str
    ts: str
    warnings: tuple[str, ...] = ()


async def post(
    slack: Slack, channel: str, message: Message, delivery: str, attempt: int, item: str, lineage: str | None = None
) -> Posted:
    """Post a message once, announcing both phases. Raises SlackError; Unclear is never repeated in here."""
    arguments = message.arguments(channel) | {"metadata": metadata(delivery, attempt, lineage)}
    await slack.announce("before_send", item)
    body = await slack.call(POST, arguments, POSTING, gate_channel=channel, needs="ts")
    await slack.announce("answered", item)
    return Posted(str(body.get("channel") or channel), body["ts"], _warnings(body))


def require_channel(kind: str, channel: object) -> str:
    """Return a channel's id. Raises DefinitionError: names can't be edited in or looked up."""
    if isinstance(channel, str) and _CHANNEL.fullmatch(channel):
        return channel
    raise DefinitionError(
        f"{kind} channel {channel!r} is not a channel id.",
        remedy="Use the id (C..., at the bottom of the channel's details in Slack).",
    )


def _warnings(body: dict[str, Any]) -> tuple[str, ...]:
    extra = body.get("response_metadata")
    listed = extra.get("warnings") if isinstance(extra, dict) else None
    said = {*str(body.get("warning") or "").split(","), *map(str, listed if isinstance(listed, list) else ())}
    message = body.get("message")
    if isinstance(message, dict) and not message.get("metadata"):
        said.add("metadata_missing")
    return tuple(sorted(said - {"", "missing_charset", "superfluous_charset"}))
