from __future__ import annotations

from typing import Any

import pytest

from kizami.sandbox.blocks import BlockKit
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import Limits

KIT = BlockKit(Limits())
DIVIDER = {"type": "divider"}


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": mrkdwn(text)}


def header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": plain(text)}


def table(*rows: list[str], **more: object) -> dict[str, Any]:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": text} for text in row] for row in rows], **more}


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}


def details(*blocks: object) -> tuple[str, ...]:
    """Return the lines of the refusal of these blocks."""
    with pytest.raises(RefusedError) as refused:
        KIT.check(list(blocks))
    assert refused.value.error == "invalid_blocks"
    return refused.value.details


@pytest.mark.parametrize(
    "block",
    [
        DIVIDER,
        header("h" * 150),
        section("s" * 3_000),
        {"type": "section", "fields": [mrkdwn("f" * 2_000)] * 10},
        {"type": "section", "text": plain("x"), "accessory": {"type": "button", "text": plain("Open"), "value": "1"}},
        {"type": "context", "elements": [mrkdwn("x"), plain("y")] * 5},
        {"type": "context", "elements": [{"type": "image", "image_url": "https://a.example/i.png", "alt_text": "i"}]},
        {"type": "actions", "elements": [{"type": "button", "text": plain("Go"), "style": "primary"}]},
        {"type": "image", "image_url": "https://a.example/i.png", "alt_text": "a picture"},
        {"type": "markdown", "text": "# Title"},
        table(*[["c"] * 20] * 100),
        table(["a", "b"], column_settings=[{"align": "right"}, None]),
        {"type": "table", "rows": [[rich({"type": "text", "text": "cell"})]]},
        rich({"type": "text", "text": "bold", "style": {"bold": True}}, {"type": "link", "url": "https://a.example"}),
        {**section("x"), "block_id": "i" * 255},
    ],
)
def test_blocks_at_their_limits_pass(block: dict[str, Any]) -> None:
    KIT.check([block])


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (header("h" * 151), "must be less than 151 characters [json-pointer:/blocks/0/text/text]"),
        (header(""), "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
        ({"type": "header", "text": mrkdwn("x")}, "unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]"),
        (section("s" * 3_001), "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"),
        ({"type": "section"}, "must define either `text` or `fields` [json-pointer:/blocks/0]"),
        (
            {"type": "section", "fields": [mrkdwn("f")] * 11},
            "no more than 10 items allowed [json-pointer:/blocks/0/fields]",
        ),
        (
            {"type": "section", "fields": [mrkdwn("ok"), mrkdwn("f" * 2_001)]},
            "must be less than 2001 characters [json-pointer:/blocks/0/fields/1/text]",
        ),
        (
            {"type": "context", "elements": [mrkdwn("e")] * 11},
            "no more than 10 items allowed [json-pointer:/blocks/0/elements]",
        ),
        ({"type": "context"}, "missing required field: elements [json-pointer:/blocks/0]"),
        ({"type": "section", "text": "bare"}, "must provide an object [json-pointer:/blocks/0/text]"),
        ({**section("x"), "colour": "red"}, "invalid additional property: colour [json-pointer:/blocks/0]"),
        ({**section("x"), "block_id": "i" * 256}, "must be less than 256 characters [json-pointer:/blocks/0/block_id]"),
        ({"type": "data_table"}, "unsupported type: data_table [json-pointer:/blocks/0/type]"),
        ({"type": "header", "text": plain(5)}, "must provide a string [json-pointer:/blocks/0/text/text]"),  # type: ignore[arg-type]  # a client may send anything
        ({"type": "context", "elements": {}}, "must provide an array [json-pointer:/blocks/0/elements]"),
        (
            rich({"type": "date", "timestamp": "soon", "format": "{date}"}),
            "must provide a number [json-pointer:/blocks/0/elements/0/elements/0/timestamp]",
        ),
        (table(["a"], column_settings=["x"]), "must provide an object [json-pointer:/blocks/0/column_settings/0]"),
        ({"text": "x"}, "missing required field: type [json-pointer:/blocks/0]"),
        ("section", "must provide an object [json-pointer:/blocks/0]"),
        (
            {"type": "section", "text": {**mrkdwn("x"), "verbatim": "no"}},
            "must provide a boolean [json-pointer:/blocks/0/text/verbatim]",
        ),
        (
            {"type": "image", "image_url": "https://a.example/i.png"},
            "missing required field: alt_text [json-pointer:/blocks/0]",
        ),
        (
            {"type": "actions", "elements": [{"type": "button", "text": plain("x"), "style": "loud"}]},
            "must be one of: primary, danger [json-pointer:/blocks/0/elements/0/style]",
        ),
    ],
)
def test_a_wrong_block_is_refused_with_its_place(block: object, line: str) -> None:
    """B080: a block with one field or element too many rejects the whole message."""
    assert line in details(block)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_up_to_fifty_blocks_pass(count: int) -> None:
    KIT.check([DIVIDER] * count)


def test_a_fifty_first_block_rejects_all() -> None:
    """B080: header, divider and footer count."""
    assert details(*[DIVIDER] * 51) == ("no more than 50 items allowed [json-pointer:/blocks]",)


def test_a_block_id_occurs_once_in_a_message() -> None:
    twice = {**section("x"), "block_id": "same"}
    assert details(twice, DIVIDER, twice) == ("block_id already exists [json-pointer:/blocks/2/block_id]",)


def test_a_text_is_measured_as_it_is_stored() -> None:
    """B082: 2,999 characters of which 700 are ampersands are 5,799 after escaping."""
    text = "&" * 700 + "x" * 2_299
    assert details(section(text)) == ("must be less than 3001 characters [json-pointer:/blocks/0/text/text]",)
    KIT.check([section("&amp;" * 600)])
    BlockKit(Limits(count_after_escaping=False)).check([section(text)])


def test_a_link_is_not_measured_as_escaped() -> None:
    link = "<https://a.example/" + "p" * 2_980 + ">"
    assert len(link) == 3_000
    KIT.check([section(link)])


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (table(*[["c"]] * 101), "no more than 100 items allowed [json-pointer:/blocks/0/rows]"),
        (table(["c"] * 21), "no more than 20 items allowed [json-pointer:/blocks/0/rows/0]"),
        (table(["a", "b"], ["a"]), "all rows must have 2 cells [json-pointer:/blocks/0/rows/1]"),
        (table(["a", ""]), "must be more than 0 characters [json-pointer:/blocks/0/rows/0/1/text]"),
        (table(["c" * 12_000]), "must be less than 10001 characters [json-pointer:/blocks/0/rows/0/0/text]"),
        (table(), "no less than 1 items allowed [json-pointer:/blocks/0/rows]"),
        (
            {"type": "table", "rows": [[{"type": "raw_number", "value": 1}]]},
            "unsupported type: raw_number [json-pointer:/blocks/0/rows/0/0/type]",
        ),
        (
            {"type": "table", "rows": [[rich({"type": "text", "text": ""})]]},
            "must be more than 0 characters [json-pointer:/blocks/0/rows/0/0/elements/0/elements/0/text]",
        ),
        (
            {"type": "table", "rows": [[rich()]]},
            "no less than 1 items allowed [json-pointer:/blocks/0/rows/0/0/elements/0/elements]",
        ),
    ],
)
def test_a_table_that_breaks_a_limit_is_refused(block: dict[str, Any], line: str) -> None:
    """B089: rows, columns, ragged rows, empty cells."""
    assert line in details(block)


def sum_refusal(*blocks: dict[str, Any], limits: Limits | None = None) -> RefusedError:
    kit = BlockKit(limits or Limits())
    kit.check(list(blocks))
    with pytest.raises(RefusedError) as refused:
        kit.check_sum(blocks)
    return refused.value


def test_all_cells_of_a_message_share_ten_thousand_characters() -> None:
    """B089: 60 rows of 4 columns of 45 characters are 10,800."""
    refused = sum_refusal(table(*[["x" * 45] * 4] * 60))
    assert (refused.error, refused.details) == ("invalid_blocks", ("tables must be less than 10001 characters",))
    KIT.check_sum([table(*[["x" * 45] * 4] * 55)])


def test_a_message_has_one_table() -> None:
    """B089: whether two are allowed is a setting."""
    refused = sum_refusal(table(["a"]), table(["b"]))
    assert (refused.error, refused.details) == ("invalid_attachments", ("only_one_table_allowed",))
    BlockKit(Limits(tables=2)).check_sum([table(["a"]), table(["b"])])


def test_two_tables_share_the_characters_of_one() -> None:
    """B089: 6,000 characters each are too much even where two tables are allowed."""
    big = table(["x" * 6_000])
    assert sum_refusal(big, big, limits=Limits(tables=2)).error == "invalid_blocks"


def test_numbers_in_a_table_are_a_setting() -> None:
    block = {"type": "table", "rows": [[{"type": "raw_number", "value": 1.5, "text": "1.5"}]]}
    BlockKit(Limits(table_numbers=True)).check([block])


def test_blocks_that_are_legal_one_by_one_can_be_too_long_together() -> None:
    """B083: five sections of 2,900 characters."""
    assert sum_refusal(*[section("x" * 2_900)] * 5).error == "msg_blocks_too_long"
    KIT.check_sum([section("x" * 2_640)] * 5)
    assert sum_refusal(*[section("x" * 2_640)] * 5, section("y")).error == "msg_blocks_too_long"


def test_a_refusal_does_not_grow_with_what_is_refused() -> None:
    assert len(details(*[{"type": "nonsense"}] * 50)) == 20
