from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kizami.core.errors import InvalidInputError
from kizami.core.zone import load_zone
from kizami.slack.blocks import Block, context, divider, field_section, fit, header, list_sections, section, table
from kizami.slack.board_view import BoardView, render, render_smaller, stamp, view_of
from kizami.slack.limits import LIMITS, SMALLER, Limits
from kizami.slack.message import Message, from_json, message
from kizami.slack.text import width

UTC = load_zone("UTC")
CELL = st.one_of(st.none(), st.integers(), st.text(max_size=40), st.integers(200, 400).map("&<😀x".__mul__))


def cells(block: Block) -> list[list[str]]:
    return [[cell["text"] for cell in line] for line in block["rows"]]


def said(blocks: list[Block] | tuple[Block, ...]) -> str:
    return " ".join(element["text"] for block in blocks if block["type"] == "context" for element in block["elements"])


def characters(value: Any) -> int:
    if isinstance(value, dict):
        return sum(
            width(part) if key == "text" and isinstance(part, str) else characters(part) for key, part in value.items()
        )
    return sum(map(characters, value)) if isinstance(value, list | tuple) else 0


@pytest.mark.parametrize("count", [0, 1, 46, 47, 48, 49, 50, 51, 500])
def test_blocks_stay_within_fifty_and_the_number_left_off_is_exact(count: int) -> None:
    """B080: header, divider, footer and the line itself count."""
    blocks = [header("Services"), divider(), *[section(f"row {number}") for number in range(count)]]
    fitted = fit(blocks, footer=[context(["Last synced"])])
    assert len(fitted) <= 50
    shown = sum(block["type"] == "section" for block in fitted)
    assert ("more" in said(fitted)) == (shown < count)
    if shown < count:
        assert f"and {count - shown} more" in said(fitted)


def test_fields_and_elements_stay_within_ten() -> None:
    """B080: eleven of them."""
    fields = field_section([f"f{number}" for number in range(11)])["fields"]
    elements = context([f"e{number}" for number in range(11)])["elements"]
    assert (len(fields), fields[-1]["text"]) == (10, "… and 2 more")
    assert (len(elements), elements[-1]["text"]) == (10, "… and 2 more")


def test_headers_are_plain_and_short() -> None:
    """B082: header text of 151, and a name of 4,000."""
    for length in (151, 4_000):
        text = header("<" * length)["text"]
        assert (text["type"], width(text["text"])) == ("plain_text", 150)
    assert header("")["text"]["text"] == "-"


def test_sixty_rows_of_long_cells_end_in_an_exact_number() -> None:
    """B089: 60 rows of 4 columns of 45 characters are 10,800 characters."""
    blocks = table(["a", "b", "c", "d"], [["x" * 45] * 4] * 60)
    shown = len(cells(blocks[0])) - 1
    assert characters(blocks[0]["rows"]) <= 10_000
    assert 50 <= shown < 60
    assert f"and {60 - shown} more" in said(blocks)


def test_tables_stay_within_rows_columns_and_cells() -> None:
    """B089: 101 rows, 21 columns, a cell of 12,000, ragged rows, an empty cell."""
    rows: list[list[object]] = [["x" * 12_000], [], ["", None], *[[*range(21)] for _ in range(98)]]
    blocks = table([f"c{number}" for number in range(21)], rows)
    lines = cells(blocks[0])
    assert len(lines) <= 100
    assert {len(line) for line in lines} == {20}
    assert all(cell.strip() for line in lines for cell in line)
    assert "1 more columns" in said(blocks)


@settings(max_examples=40)
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=6), max_size=12),
    limits=st.sampled_from([LIMITS, SMALLER, Limits(blocks=6, table_total=400, blocks_total=2_000, section=300)]),
)
def test_every_rendering_keeps_every_limit(rows: list[list[object]], limits: Limits) -> None:
    """B080, B082, B083, B089: measured after escaping, for the table and for the fallback."""
    view = view_of("Services & <more>", rows, None, UTC)
    for rendering in (render(view, limits), render_smaller(view, limits)):
        sent = rendering.stamped(stamp(0, UTC), limits)
        assert 0 < width(sent.text) < 3_000
        assert len(sent.blocks) <= limits.blocks
        assert characters(sent.blocks) <= limits.blocks_total
        for block in sent.blocks:
            if block["type"] == "section":
                assert 0 < width(block["text"]["text"]) <= limits.section


def test_what_the_fallback_leaves_off_is_exact() -> None:
    lines = list_sections(["name", "status"], [[f"s{number}", "x" * 100] for number in range(500)], SMALLER)
    shown = sum(block["text"]["text"].count("*") // 2 for block in lines if block["type"] == "section")
    assert shown > 10
    assert f"and {500 - shown} more" in said(lines)


def test_the_same_rows_make_the_same_content_and_the_stamp_is_outside() -> None:
    """B082: unchanged boards aren't edited; B085: the tenth edit equals the first."""
    view = view_of("Services", [{"name": "<!here>", "status": "up"}], None, UTC)
    first, again = render(view), render(view)
    assert first.content_hash == again.content_hash
    assert first.stamped("Last synced: now") != first.stamped("Last synced: later")
    other = view_of("Services", [{"name": "<!here>", "status": "down"}], None, UTC)
    assert render(other).content_hash != first.content_hash


def test_rows_of_any_usual_kind_become_cells() -> None:
    @dataclass
    class Service:
        name: str
        status: str

    expected = BoardView("t", ("name", "status"), (("web", "up"),))
    assert view_of("t", [{"name": "web", "status": "up"}], None, UTC) == expected
    assert view_of("t", [Service("web", "up")], None, UTC) == expected
    assert view_of("t", [("web", "up")], ["name", "status"], UTC) == expected
    assert view_of("t", [("web", "up")], None, UTC).columns == ("column 1", "column 2")


def test_text_and_blocks_are_kept_together() -> None:
    kept = message("hello", [divider()])
    assert from_json(kept.to_json()) == kept
    assert message("").text == "-"
    assert width(message("x" * 5_000).text) < 3_000
    with pytest.raises(InvalidInputError, match="51 blocks"):
        message("hello", [divider()] * 51)
    assert Message("a").stamped("b") == Message("a\nb")
