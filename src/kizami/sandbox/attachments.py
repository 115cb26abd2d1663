"""The grammar of attachments, the older way to add to a message."""

from __future__ import annotations

from typing import Any

from kizami.sandbox.blocks import BlockKit
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import Limits
from kizami.sandbox.shapes import Check, array, boolean, fault, number, one_of, record, string

_TEXT_MAX = 40_000
_FIELDS_MAX = 100
_TEXTS = (
    "author_icon",
    "author_link",
    "author_name",
    "color",
    "fallback",
    "footer",
    "footer_icon",
    "image_url",
    "pretext",
    "text",
    "thumb_url",
    "title",
    "title_link",
)
_SUBSTANCE = frozenset({"blocks", "fallback", "fields", "image_url", "pretext", "text", "title"})


class Attachments:
    """Checks the attachments of a message against the limits."""

    def __init__(self, limits: Limits, block_kit: BlockKit) -> None:
        self._limits = limits
        self._block_kit = block_kit
        self._check = record({}, _fields())

    def check(self, attachments: object) -> tuple[dict[str, Any], ...]:
        """Return the attachments, or raise RefusedError unless Slack would take them."""
        if not isinstance(attachments, list):
            raise RefusedError("invalid_attachments", [fault("must provide an array", "/attachments")])
        if len(attachments) > self._limits.attachments:
            raise RefusedError("too_many_attachments")
        for index, attachment in enumerate(attachments):
            self._check_one(attachment, f"/attachments/{index}")
        return tuple(attachments)

    def _check_one(self, attachment: object, at: str) -> None:
        faults: list[str] = []
        self._check(attachment, at, faults)
        if isinstance(attachment, dict) and not _SUBSTANCE & attachment.keys():
            faults.append(fault("no text", at))
        if faults:
            raise RefusedError("invalid_attachments", faults)
        if isinstance(attachment, dict):
            self._block_kit.check(attachment.get("blocks", []), f"{at}/blocks")


def _fields() -> dict[str, Check]:
    text = string(_TEXT_MAX)
    field = record({"title": text, "value": text}, {"short": boolean})
    others: dict[str, Check] = {
        "blocks": _anything,
        "fields": array(field, _FIELDS_MAX, least=0),
        "mrkdwn_in": array(one_of("fields", "pretext", "text"), _FIELDS_MAX, least=0),
        "ts": number,
    }
    return {**dict.fromkeys(_TEXTS, text), **others}


def _anything(value: object, at: str, faults: list[str]) -> None:
    """Leave blocks to the check of blocks, which knows their limits."""
    del value, at, faults
