"""Blocks that Slack accepts: every limit is kept before the call, and what is left off is said, with its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.slack.limits import LIMITS, Limits
from kizami.slack.text import CUT, cut, escape, plain, shown, split, width

if TYPE_CHECKING:
    from collections.abc import Sequence

Block = dict[str, Any]
_AROUND: Final = 500
"""Characters left for what stands around the rows: header, stamp and the line that says what was left off."""


def header(raw: object, limits: Limits = LIMITS) -> Block:
    """Return a header; plain text, so nothing in it is escaped or pings anybody."""
    return {"type": "header", "text": {"type": "plain_text", "text": cut(shown(raw), limits.header), "emoji": True}}


def section(escaped: str, limits: Limits = LIMITS) -> Block:
    """Return a section of mrkdwn text that is escaped already; what is too long ends in a visible cut."""
    return {"type": "section", "text": _mrkdwn(cut(shown(escaped), limits.section))}


def sections(escaped: str, limits: Limits = LIMITS) -> list[Block]:
    """Return as many sections as a text needs; a code fence is closed and opened again at each seam."""
    return [section(part, limits) for part in split(escaped, limits.section)]


def field_section(escaped: Sequence[str], limits: Limits = LIMITS) -> Block:
    """Return a section of short fields side by side; more than Slack takes ends in "and N more"."""
    texts = _at_most(escaped, limits.fields)
    return {"type": "section", "fields": [_mrkdwn(cut(shown(text), limits.field)) for text in texts]}


def context(escaped: Sequence[str], limits: Limits = LIMITS) -> Block:
    """Return a line of small print; more elements than Slack takes end in "and N more"."""
    texts = _at_most(escaped, limits.context_elements)
    return {"type": "context", "elements": [_mrkdwn(cut(shown(text), limits.field)) for text in texts]}


def divider() -> Block:
    """Return a line across."""
    return {"type": "divider"}


def more(count: int, what: str = "") -> str:
    """Return the line that says how many were left off."""
    return f"… and {count:,} more{f' {what}' if what else ''}"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], limits: Limits = LIMITS) -> list[Block]:
    """Return one table block, and a line that says how many rows and columns didn't fit.

    Cells are raw text: what stands in them pings nobody. Rows that are too short are filled up, long cells are cut.
    """
    count = min(max([len(columns), *map(len, rows[: limits.table_rows])]), limits.table_columns)
    left = min(limits.table_total, limits.blocks_total - _AROUND)
    cell = max(len(CUT), left // (2 * count))
    lines: list[list[str]] = []
    for row in (columns, *rows[: limits.table_rows - 1]):
        line = [cut(shown(value), cell) for value in (*row, *[None] * count)][:count]
        left -= sum(map(width, line))
        if left < 0:
            break
        lines.append(line)
    block = {"type": "table", "rows": [[_cell(text) for text in line] for line in lines]}
    widest = max(map(len, (columns, *rows)))
    said = _left_off(len(rows) - (len(lines) - 1), widest - count)
    return [block, context(said, limits)] if said else [block]


def list_sections(
    columns: Sequence[str], rows: Sequence[Sequence[object]], limits: Limits = LIMITS, blocks_left: int | None = None
) -> list[Block]:
    """Return the rows as lines of text in as few sections as possible, and a line for those that didn't fit."""
    room = (limits.blocks if blocks_left is None else blocks_left) - 1
    texts: list[str] = []
    done = total = 0
    for row in rows:
        line = _line(columns, row, limits)
        total += width(line) + 1
        if total > limits.blocks_total - _AROUND:
            break
        if texts and width(texts[-1]) + 1 + width(line) <= limits.section:
            texts[-1] += f"\n{line}"
        elif len(texts) < room:
            texts.append(line)
        else:
            break
        done += 1
    said = _left_off(len(rows) - done, 0)
    return [section(text, limits) for text in texts] + ([context(said, limits)] if said else [])


def fit(blocks: Sequence[Block], limits: Limits = LIMITS, footer: Sequence[Block] = ()) -> list[Block]:
    """Return blocks and footer within the number allowed; what is left off is counted in a line before the footer."""
    room = limits.blocks - len(footer)
    if len(blocks) <= room:
        return [*blocks, *footer]
    kept = blocks[: room - 1]
    return [*kept, context([more(len(blocks) - len(kept))], limits), *footer]


def _line(columns: Sequence[str], row: Sequence[object], limits: Limits) -> str:
    first, *others = row or [None]
    named = [f"{escape(name)}: {escape(shown(value))}" for name, value in zip(columns[1:], others, strict=False)]
    return cut(" · ".join([f"*{escape(shown(first))}*", *named]).replace("\n", " "), limits.section)


def _left_off(rows: int, columns: int) -> list[str]:
    return ([more(rows)] if rows > 0 else []) + ([more(columns, "columns")] if columns > 0 else [])


def _at_most(texts: Sequence[str], limit: int) -> list[str]:
    if len(texts) <= limit:
        return list(texts) or [""]
    return [*texts[: limit - 1], more(len(texts) - limit + 1)]


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cell(text: str) -> Block:
    return {"type": "raw_text", "text": plain(text)}
