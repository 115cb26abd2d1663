"""Reads what a message is to say from the arguments of a call, and refuses what Slack would refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kizami.sandbox.arguments import Arguments
from kizami.sandbox.attachments import Attachments
from kizami.sandbox.blocks import BlockKit
from kizami.sandbox.escaping import stored_mrkdwn
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import Limits

_EVENT_TYPE = re.compile(r"[A-Za-z0-9_-]+")
_SCHEMA_WARNING = "invalid_metadata_schema"


@dataclass(frozen=True, slots=True)
class Draft:
    """What the caller gave; None is what was left out."""

    text: str | None
    blocks: tuple[dict[str, Any], ...] | None
    attachments: tuple[dict[str, Any], ...] | None
    metadata: dict[str, Any] | None
    warnings: tuple[str, ...]


class ContentReader:
    """Turns arguments into a draft that keeps the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._block_kit = BlockKit(limits)
        self._attachment_check = Attachments(limits, self._block_kit)

    def read(self, arguments: Arguments) -> Draft:
        """Return the draft; raises RefusedError for anything that no method takes."""
        blocks = self._blocks(arguments)
        attachments = self._attachments(arguments)
        text = self._text(arguments)
        metadata, warnings = self._metadata(arguments)
        if not (text and text.strip()) and not blocks and not attachments:
            raise RefusedError("no_text")
        self._block_kit.check_sum([*(blocks or ()), *(b for a in attachments or () for b in a.get("blocks", ()))])
        return Draft(text, blocks, attachments, metadata, warnings)

    def cut(self, draft: Draft) -> tuple[str, tuple[str, ...]]:
        """Return the text as posting keeps it, and the draft's warnings with one more if it was cut."""
        text, most = draft.text or "", self._limits.post_text
        return (text, draft.warnings) if len(text) <= most else (text[:most], (*draft.warnings, "message_truncated"))

    def check_editable(self, draft: Draft) -> None:
        """Raise RefusedError msg_too_long for a text that can be posted, but not by an edit."""
        text = draft.text or ""
        length = len(stored_mrkdwn(text)) if self._limits.count_after_escaping else len(text)
        if length > self._limits.update_text:
            raise RefusedError("msg_too_long")

    def _text(self, arguments: Arguments) -> str | None:
        markdown = arguments.text("markdown_text")
        if markdown is None:
            return arguments.text("text")
        if arguments.given("text") or arguments.given("blocks"):
            raise RefusedError("markdown_text_conflict")
        if len(markdown) > self._limits.markdown_text:
            raise RefusedError("msg_too_long")
        return markdown

    def _blocks(self, arguments: Arguments) -> tuple[dict[str, Any], ...] | None:
        blocks = arguments.structure("blocks", "invalid_blocks_format")
        if blocks is None:
            return None
        if not isinstance(blocks, list):
            raise RefusedError("invalid_blocks_format")
        self._block_kit.check(blocks)
        return tuple(blocks)

    def _attachments(self, arguments: Arguments) -> tuple[dict[str, Any], ...] | None:
        attachments = arguments.structure("attachments", "invalid_attachments")
        return None if attachments is None else self._attachment_check.check(attachments)

    def _metadata(self, arguments: Arguments) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
        """Return the metadata and warnings; a schema that Slack doesn't take drops it, and only warns."""
        metadata = arguments.structure("metadata", "invalid_metadata_format")
        if metadata is None:
            return None, ()
        most = self._limits.metadata_bytes
        if not isinstance(metadata, dict):
            raise RefusedError("invalid_metadata_format")
        if metadata and not _is_schema(metadata):
            return None, (_SCHEMA_WARNING,)
        if len(json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")) > most:
            raise RefusedError("metadata_too_large")
        return metadata, ()


def _is_schema(metadata: dict[str, Any]) -> bool:
    event_type, payload = metadata.get("event_type"), metadata.get("event_payload")
    return (
        isinstance(event_type, str)
        and _EVENT_TYPE.fullmatch(event_type) is not None
        and isinstance(payload, dict)
        and all(_is_payload_value(value) for value in payload.values())
    )


def _is_payload_value(value: object) -> bool:
    """Say whether Slack's types allow the value: a plain one, an object of plain ones, or an array of either."""
    entries: Sequence[object] = value if isinstance(value, list) else [value]
    return all(
        _is_plain(entry) or (isinstance(entry, dict) and all(map(_is_plain, entry.values()))) for entry in entries
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)
