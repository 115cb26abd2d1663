"""The grammar of rich text, as a block of its own and as the cell of a table."""

from __future__ import annotations

from collections.abc import Mapping

from kizami.sandbox.shapes import Check, array, boolean, by_type, number, one_of, record, string

_ITEMS_MAX = 1_000
_TEXT_MAX = 40_000
_WORD_MAX = 255
_URL_MAX = 3_000


def rich_text(block_fields: Mapping[str, Check]) -> Check:
    """Return the check of a rich_text block; every section in it must have something in it."""
    style = {"style": record({}, dict.fromkeys(("bold", "italic", "strike", "code", "underline"), boolean))}
    text, word = string(_TEXT_MAX), string(_WORD_MAX)
    inline = by_type(
        {
            "text": record({"text": text}, style),
            "link": record({"url": string(_URL_MAX)}, {"text": text, "unsafe": boolean, **style}),
            "emoji": record({"name": word}, {"unicode": word, "skin_tone": number, **style}),
            "user": record({"user_id": word}, style),
            "usergroup": record({"usergroup_id": word}, style),
            "channel": record({"channel_id": word}, style),
            "broadcast": record({"range": one_of("here", "channel", "everyone")}, style),
            "date": record({"timestamp": number, "format": text}, {"url": string(_URL_MAX), "fallback": text, **style}),
            "color": record({"value": word}, style),
        }
    )
    elements = {"elements": array(inline, _ITEMS_MAX)}
    section = record(elements)
    items = array(by_type({"rich_text_section": section}), _ITEMS_MAX)
    layout: Mapping[str, Check] = {"indent": number, "offset": number, "border": number}
    parts = by_type(
        {
            "rich_text_section": section,
            "rich_text_quote": record(elements, {"border": number}),
            "rich_text_preformatted": record(elements, {"border": number, "language": word}),
            "rich_text_list": record({"style": one_of("bullet", "ordered"), "elements": items}, layout),
        }
    )
    return record({"elements": array(parts, _ITEMS_MAX)}, block_fields)
