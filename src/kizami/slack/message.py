"""A message as it is sent, and a fingerprint of what it says that leaves the time stamp out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import InvalidInputError
from kizami.slack.blocks import Block, context
from kizami.slack.limits import LIMITS, Limits
from kizami.slack.text import cut, plain, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT_TYPE: Final = "kizami_delivery"


@dataclass(frozen=True, slots=True)
class Message:
    """Text, which is the notification, and blocks. Sending one without the other loses something, so both go always."""

    text: str
    blocks: tuple[Block, ...] = ()

    @property
    def content_hash(self) -> str:
        """Return a fingerprint of what was rendered; the same rows give the same one, in every process."""
        shape = json.dumps([self.text, self.blocks], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(shape.encode()).hexdigest()[:32]

    def stamped(self, stamp: str, limits: Limits = LIMITS) -> Message:
        """Return the message with its time stamp as the last line of text and blocks."""
        text = f"{cut(self.text, limits.text - len(stamp) - 1)}\n{stamp}"
        return Message(text, (*self.blocks, context([stamp], limits)) if self.blocks else ())

    def to_json(self) -> str:
        """Return the message as it is stored."""
        return json.dumps({"text": self.text, "blocks": list(self.blocks)}, separators=(",", ":"))

    def arguments(self, channel: str) -> dict[str, Any]:
        """Return what a post or an edit takes; unfurls are off, also for links inside blocks."""
        given: dict[str, Any] = {"channel": channel, "text": self.text}
        if self.blocks:
            given["blocks"] = list(self.blocks)
        return given | {"unfurl_links": False, "unfurl_media": False}


def message(text: str, blocks: Sequence[Block] | None = None, limits: Limits = LIMITS) -> Message:
    """Return a message from text and blocks of the caller's; text that is too long ends in a visible cut.

    Raises InvalidInputError for more blocks than Slack takes: one too many would refuse the whole message.
    """
    given = tuple(blocks or ())
    if len(given) > limits.blocks:
        raise InvalidInputError(
            f"The message has {len(given)} blocks; Slack takes {limits.blocks}.",
            remedy="Use kizami.slack.blocks.fit, which keeps the first ones and says how many are left off.",
            path="blocks",
        )
    return Message(cut(shown(plain(text)), limits.text), given)


def from_json(stored: str) -> Message:
    """Return the message that `to_json` gave."""
    content = json.loads(stored)
    return Message(content["text"], tuple(content.get("blocks") or ()))


def metadata(delivery: str, attempt: int, lineage: str | None = None) -> dict[str, Any]:
    """Return what makes a message findable again: its delivery id and attempt. Every member can read it.

    `lineage` finds it for those who share a table and not the delivery ids.
    """
    shared = {} if lineage is None else {"lineage": lineage}
    return {"event_type": EVENT_TYPE, "event_payload": {"delivery": delivery, "attempt": attempt, **shared}}
