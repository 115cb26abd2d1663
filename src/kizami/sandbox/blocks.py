"""Which blocks a message may carry, and how large: the grammar of Block Kit as far as a mirror can want it.

It is meant to be at least as strict as Slack's: what it doesn't know (data_table, video, input, …) it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kizami.sandbox.escaping import stored, stored_mrkdwn
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.rich_text import rich_text
from kizami.sandbox.settings import Limits
from kizami.sandbox.shapes import Check, array, boolean, by_type, fault, number, one_of, or_null, record, string

_DETAILS_MAX = 20


class BlockKit:
    """Checks the blocks of a message against the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._plain = _measure(limits, stored)
        self._mrkdwn = _measure(limits, stored_mrkdwn)
        self._check = array(by_type(self._kinds()), limits.blocks, least=0)

    def check(self, blocks: object, at: str = "/blocks") -> None:
        """Raise RefusedError, with the places, unless Slack would take the blocks."""
        faults: list[str] = []
        self._check(blocks, at, faults)
        if isinstance(blocks, list) and not faults:
            faults += _repeated_ids(blocks, at)
            faults += self._table_faults(blocks, at)
        if faults:
            raise RefusedError("invalid_blocks", faults[:_DETAILS_MAX])

    def check_sum(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Raise RefusedError if all blocks of a message together are too much."""
        tables = [block for block in blocks if block["type"] == "table"]
        if len(tables) > self._limits.tables:
            raise RefusedError("invalid_attachments", ["only_one_table_allowed"])
        if self._length(tables) > self._limits.table_text:
            raise RefusedError("invalid_blocks", [f"tables must be less than {self._limits.table_text + 1} characters"])
        if self._length(blocks) > self._limits.blocks_text_total:
            raise RefusedError("msg_blocks_too_long")

    def _length(self, node: object) -> int:
        return sum(self._plain(text) for text in _texts(node))

    def _kinds(self) -> dict[str, Check]:
        limits, block_id = self._limits, {"block_id": string(self._limits.block_id)}
        any_text = self._any_text
        image = {"image_url": string(limits.url), "alt_text": string(limits.alt_text)}
        accessory = by_type({"button": self._button(), "image": record(image)})
        section = {
            "text": any_text(limits.section_text),
            "fields": array(any_text(limits.field_text), limits.section_fields),
            "accessory": accessory,
            "expand": boolean,
        }
        elements = by_type(
            {**self._text_kinds(limits.section_text), "image": record(image)},
        )
        return {
            "section": _either("text", "fields", record({}, section | block_id)),
            "header": record({"text": self._plain_text(limits.header_text)}, block_id),
            "divider": record({}, block_id),
            "context": record({"elements": array(elements, limits.context_elements)}, block_id),
            "actions": record(
                {"elements": array(by_type({"button": self._button()}), limits.actions_elements)}, block_id
            ),
            "image": record(image, block_id | {"title": self._plain_text(limits.alt_text)}),
            "markdown": record({"text": string(limits.markdown_text)}, block_id),
            "rich_text": rich_text(block_id),
            "table": self._table(block_id),
        }

    def _text_kinds(self, most: int) -> dict[str, Check]:
        return {
            "mrkdwn": record({"text": string(most, measure=self._mrkdwn)}, {"verbatim": boolean}),
            "plain_text": record({"text": string(most, measure=self._plain)}, {"emoji": boolean}),
        }

    def _any_text(self, most: int) -> Check:
        return by_type(self._text_kinds(most))

    def _plain_text(self, most: int) -> Check:
        return by_type({"plain_text": self._text_kinds(most)["plain_text"]})

    def _button(self) -> Check:
        limits = self._limits
        optional = {
            "action_id": string(limits.action_id),
            "url": string(limits.url),
            "value": string(limits.button_value),
            "style": one_of("primary", "danger"),
            "accessibility_label": string(limits.button_text),
        }
        return record({"text": self._plain_text(limits.button_text)}, optional)

    def _table(self, block_id: Mapping[str, Check]) -> Check:
        limits = self._limits
        cells = {
            "raw_text": record({"text": string(limits.table_text, measure=self._plain)}),
            "rich_text": rich_text({}),
        }
        if limits.table_numbers:
            cells["raw_number"] = record({"value": number}, {"text": string(limits.table_text)})
        column = record({}, {"align": one_of("left", "center", "right"), "is_wrapped": boolean})
        rows = array(array(by_type(cells), limits.table_columns), limits.table_rows)
        settings = array(or_null(column), limits.table_columns, least=0)
        return record({"rows": rows}, {**block_id, "column_settings": settings})

    def _table_faults(self, blocks: Sequence[Mapping[str, Any]], at: str) -> Iterator[str]:
        for index, block in enumerate(blocks):
            if block["type"] == "table":
                width = len(block["rows"][0])
                for row, cells in enumerate(block["rows"]):
                    if len(cells) != width:
                        yield fault(f"all rows must have {width} cells", f"{at}/{index}/rows/{row}")


def _measure(limits: Limits, form: Callable[[str], str]) -> Callable[[str], int]:
    return (lambda text: len(form(text))) if limits.count_after_escaping else len


def _either(first: str, second: str, inner: Check) -> Check:
    def check(value: object, at: str, faults: list[str]) -> None:
        inner(value, at, faults)
        if isinstance(value, dict) and first not in value and second not in value:
            faults.append(fault(f"must define either `{first}` or `{second}`", at))

    return check


def _repeated_ids(blocks: Sequence[Mapping[str, Any]], at: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        block_id = block.get("block_id")
        if block_id in seen:
            yield fault("block_id already exists", f"{at}/{index}/block_id")
        if block_id is not None:
            seen.add(block_id)


def _texts(node: object) -> Iterator[str]:
    """Yield every text in a tree of blocks."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            if name == "text" and isinstance(value, str):
                yield value
            else:
                yield from _texts(value)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            yield from _texts(value)
