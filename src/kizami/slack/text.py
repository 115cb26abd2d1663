"""Text that Slack shows as it is: escaped once, cut visibly, and never inside a link, an entity or a character."""

from __future__ import annotations

import re
from typing import Final

CUT: Final = "… (cut)"
EMPTY: Final = "-"
"""What stands where there would be nothing: Slack refuses empty text."""

_UNIT: Final = re.compile(r"<[^<>\n]*>|&(?:amp|lt|gt);|(?:\r\n|.[\u0300-\u036f\u200d\ufe00-\ufe0f]*)", re.DOTALL)
_FENCE: Final = "```"
_OPENING: Final = f"{_FENCE}\n"
_CLOSING: Final = f"\n{_FENCE}"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def escape(raw: object) -> str:
    """Return text for mrkdwn or `text`, so that nobody is pinged and everything shows as it is.

    Exactly three characters are escaped, `&` first. Escape once, when rendering, from the raw value.
    """
    return plain(raw).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(raw: object) -> str:
    """Return text that can be sent at all: half of a surrogate pair becomes the replacement character."""
    return _SURROGATES.sub("\ufffd", str(raw))


def link(url: str, label: object) -> str:
    """Return a mrkdwn link with an escaped label."""
    address = escape(url).replace("|", "%7C")
    return f"<{address}|{escape(label).replace('|', '¦')}>"


def cut(escaped: str, limit: int, mark: str = CUT) -> str:
    """Return already escaped text of at most `limit` characters, with a visible mark where some was left off.

    Links, entities and combined characters stay whole; an open code fence is closed before the mark.
    """
    if width(escaped) <= limit:
        return escaped
    kept = _fit(escaped, limit - width(mark))
    if kept.count(_FENCE) % 2:
        kept = _fit(escaped, limit - width(mark) - len(_CLOSING))
        kept = kept + _CLOSING if kept.count(_FENCE) % 2 else kept
    return kept + mark


def width(text: str) -> int:
    """Return the length as the stricter of two counts: UTF-16 units, where a character outside the plane counts 2."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(escaped: str, limit: int) -> list[str]:
    """Return the text in parts of at most `limit` characters; a code fence is closed and opened again at each seam."""
    parts: list[str] = []
    opening, rest = "", escaped
    while width(opening + rest) > limit:
        part = _at_line_end(_fit(rest, limit - len(opening) - len(_CLOSING)))
        if not part:  # one link longer than a whole part: it can't be shown, and that is shown
            rest = CUT + rest[_first_unit(rest) :]
            continue
        rest = rest[len(part) :].removeprefix("\n")
        is_open = (opening + part).count(_FENCE) % 2 == 1
        parts.append(opening + part + (_CLOSING if is_open else ""))
        opening = _OPENING if is_open else ""
    return [part for part in (*parts, opening + rest if rest else "") if part.strip()]


def shown(raw: object) -> str:
    """Return a cell's value as text that is never empty."""
    text = "" if raw is None else plain(raw)
    return text if text.strip() else EMPTY


def _fit(escaped: str, limit: int) -> str:
    """Return the longest beginning of whole units within the limit."""
    end = used = 0
    for unit in _UNIT.finditer(escaped):
        used += width(unit.group())
        if used > limit:
            break
        end = unit.end()
    kept = escaped[:end]
    return kept[: len(kept) - _open_ticks(kept, escaped[end:])]


def _open_ticks(kept: str, rest: str) -> int:
    """Return how many backticks of a fence at the seam would be torn off."""
    before = len(kept) - len(kept.rstrip("`"))
    after = len(rest) - len(rest.lstrip("`"))
    return before % len(_FENCE) if after else 0


def _first_unit(escaped: str) -> int:
    """Return the length of the first unit."""
    unit = _UNIT.match(escaped)
    return unit.end() if unit else len(escaped)


def _at_line_end(part: str) -> str:
    """Return the part up to its last line end, when that leaves at least half of it."""
    end = part.rfind("\n")
    return part[:end] if end > len(part) // 2 else part
