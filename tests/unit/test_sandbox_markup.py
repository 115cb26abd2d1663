from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kizami.sandbox.escaping import stored, stored_mrkdwn
from kizami.sandbox.markup import link, mrkdwn, plain
from tests.unit.sandbox_html import elements_of

LINK = '<a href="https://a.example/?a=1&amp;b=2" rel="noreferrer noopener nofollow">{}</a>'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "plain"),
        ("*bold* _slanted_ ~gone~", "<strong>bold</strong> <em>slanted</em> <s>gone</s>"),
        ("2*3*4 snake_case_name a~b~c", "2*3*4 snake_case_name a~b~c"),
        ("* not bold *", "* not bold *"),
        ("`*code*`", "<code>*code*</code>"),
        ("*`bold code`*", "<strong><code>bold code</code></strong>"),
        ("```\none\n *two*\n```", "<pre>one\n *two*</pre>"),
        ("a &amp; b &lt;c&gt;", "a &amp; b &lt;c&gt;"),
        ("&amp;lt;", "&amp;lt;"),
        ("<https://a.example/?a=1&amp;b=2|*here*>", LINK.format("*here*")),
        ("<https://a.example/?a=1&amp;b=2>", LINK.format("https://a.example/?a=1&amp;b=2")),
        ("*<https://a.example/?a=1&amp;b=2|x>*", f"<strong>{LINK.format('x')}</strong>"),
        ("<!here>", '<span class="mention">@here</span>'),
        ("<@U1|ann>", '<span class="mention">@ann</span>'),
        ("<#C1|status>", '<span class="mention">#status</span>'),
        ("<!subteam^S1|@ops>", '<span class="mention">@ops</span>'),
        ("<!date^1796000000^{date}|in 2026>", '<span class="mention">in 2026</span>'),
        ("&lt;!here&gt;", "&lt;!here&gt;"),
        ("<javascript:alert(1)|x>", "&lt;javascript:alert(1)|x&gt;"),
        ("<b>", "&lt;b&gt;"),
        ('<https://a.example/"onmouseover="x|y>', None),
    ],
)
def test_mrkdwn_becomes_html(text: str, html: str | None) -> None:
    """B085: an escaped mention is text, one that is not escaped is marked as what it would be."""
    shown = str(mrkdwn(text))
    if html is None:
        assert elements_of(shown) == [
            ("a", {"href": 'https://a.example/"onmouseover="x', "rel": "noreferrer noopener nofollow"})
        ]
    else:
        assert shown == html


_MARKS = ["<", ">", "&", '"', "'", "`", "```", "*", "_", "~", "|", "\ue000", "\ue001", "0", "\n", " ", "x", "&lt;"]
_ATTACKS = ["<!here>", "<script>", "javascript:", "<img src=x onerror=alert(1)>", "<https://a.example|", "\ud800"]
_PIECES = st.sampled_from([*_MARKS, *_ATTACKS])


@given(st.lists(_PIECES, max_size=30).map("".join))
@example("<https://a.example|`x`>")
@example("\ue0000\ue001")
def test_no_text_makes_an_element_of_its_own(text: str) -> None:
    """B070: whatever a message says, it becomes text, emphasis, code, mentions and links to the web."""
    for name, attributes in elements_of(str(mrkdwn(text))):
        assert name in {"a", "code", "em", "pre", "s", "span", "strong"}
        assert attributes.keys() <= {"href", "rel", "class"}
        assert attributes.get("href", "https:").startswith(("https:", "http:", "mailto:", "tel:"))


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", " javascript:x", "vbscript:x"])
def test_an_address_that_a_browser_might_run_is_not_linked(url: str) -> None:
    assert str(link({"url": url, "text": "click <b>"})) == "click &lt;b&gt;"


def test_a_web_address_is_linked() -> None:
    assert elements_of(str(link({"url": "https://a.example"})))[0][1]["href"] == "https://a.example"


def test_plain_text_resolves_the_three_entities_and_no_others() -> None:
    assert plain("&lt;a&gt; &amp;amp; &quot; \ud800") == "<a> &amp; &quot; ?"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<!here> x<y & z>w", "<!here> x&lt;y &amp; z&gt;w"),
        ("&lt;!everyone&gt;", "&lt;!everyone&gt;"),
        ("<https://a.example?a=1&b=2|x & y>", "<https://a.example?a=1&b=2|x & y>"),
        ("a && b", "a &amp;&amp; b"),
    ],
)
def test_mrkdwn_is_stored_with_three_entities_and_its_commands(text: str, kept: str) -> None:
    """B085: only those three characters, and once."""
    assert stored_mrkdwn(text) == kept
    assert stored_mrkdwn(kept) == kept


def test_plain_text_is_stored_without_commands() -> None:
    assert stored("<!here> & &amp;") == "&lt;!here&gt; &amp; &amp;"
