from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizami.slack.text import CUT, EMPTY, cut, escape, link, shown, split, width

PIECES = st.sampled_from(["a", "word ", "\n", "&", "<", ">", "😀", "e\u0301", "👩‍👩‍👧", "`", "```\n", "日本"])
LINK = "<https://example.com/a|label>"


def test_exactly_three_characters_are_escaped() -> None:
    """B085."""
    assert escape("<!here> x<y & z>w") == "&lt;!here&gt; x&lt;y &amp; z&gt;w"
    assert escape("&lt;!everyone&gt;") == "&amp;lt;!everyone&amp;gt;"
    assert escape("`*_~\"'\n") == "`*_~\"'\n"


def test_half_of_a_pair_becomes_something_that_can_be_sent() -> None:
    assert escape("a\ud83d") == "a\ufffd"


def test_a_link_cannot_be_broken_out_of() -> None:
    assert link("https://a.example/?a=1&b=2", "x|y>z") == "<https://a.example/?a=1&amp;b=2|x¦y&gt;z>"


def test_nothing_is_shown_as_something() -> None:
    assert [shown(value) for value in (None, "", " \n", 0, False)] == [EMPTY, EMPTY, EMPTY, "0", "False"]


def test_text_within_the_limit_stays_as_it_is() -> None:
    assert cut("x" * 10, 10) == "x" * 10


def test_growth_by_escaping_counts() -> None:
    """B082: 2,999 characters, 700 of them ampersands, are 5,799 after escaping."""
    escaped = escape("&" * 700 + "x" * 2_299)
    assert len(escaped) == 5_799
    result = cut(escaped, 3_000)
    assert result.endswith(CUT)
    assert 2_990 <= len(result) <= 3_000


@pytest.mark.parametrize("limit", range(len(CUT), len(CUT) + 30))
def test_a_link_is_kept_whole_or_not_at_all(limit: int) -> None:
    """B082."""
    result = cut(LINK + "y" * 40, limit).removesuffix(CUT)
    assert result == "" or result.startswith(LINK)


def test_a_fence_is_closed_before_the_mark() -> None:
    """B082: a 3,500-character fenced block on one line."""
    result = cut("```" + "x" * 3_500 + "```", 3_000)
    assert width(result) <= 3_000
    assert result.count("```") == 2
    assert result.endswith(CUT)


@given(pieces=st.lists(PIECES, max_size=80), limit=st.integers(len(CUT) + 4, 60))
def test_no_cut_tears_an_entity_a_character_or_the_limit(pieces: list[str], limit: int) -> None:
    """B082."""
    whole = escape("".join(pieces))
    result = cut(whole, limit)
    assert width(result) <= limit
    kept = result.removesuffix(CUT) if result != whole else result
    assert re.sub(r"&(amp|lt|gt);", "", kept).count("&") == 0
    assert not kept.endswith("\u200d")
    assert cut(whole, limit) == result


@given(pieces=st.lists(PIECES, max_size=120), limit=st.integers(20, 60))
def test_splitting_loses_nothing_but_line_ends(pieces: list[str], limit: int) -> None:
    """B082: every part is within the limit, also after the fence is closed and opened again."""
    whole = escape("".join(pieces))
    parts = split(whole, limit)
    assert all(0 < width(part) <= limit for part in parts)
    bare = [re.sub(r"[`\n ]", "", text) for text in ("".join(parts), whole)]
    assert bare[0] == bare[1]


def test_a_link_longer_than_a_part_is_visibly_left_off() -> None:
    assert "".join(split(f"a <https://example.com/{'x' * 100}> b", 40)).count(CUT) == 1
