from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.core.errors import ConfigurationError
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, ChannelSeed, SandboxSettings
from tests.unit.sandbox_html import elements_of, text_of
from tests.unit.sandbox_slack import STATUS, HandClock

pytest_plugins = ["tests.unit.sandbox_fixtures"]

EVIL = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script><a href=\"javascript:a()\" onclick='x'>{{7777777*7}}"
)
PAGES = ("/", "/calls", f"/channels/{STATUS}")
EVIL_SETTINGS = SandboxSettings(
    channels=(ChannelSeed(STATUS, EVIL), ChannelSeed("C0OTHER", "other", is_private=True, is_archived=True)),
    bots=(BotSeed(name=EVIL),),
    team=EVIL,
    rate_limited=False,
)


@pytest.fixture
async def browser(sandbox: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sandbox.url, trust_env=False) as browser:
        yield browser


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def evil_blocks() -> list[dict[str, Any]]:
    mrkdwn = {"type": "mrkdwn", "text": f"*{EVIL}* `{EVIL}` <https://a.example|{EVIL}>"}
    inline = [{"type": "text", "text": EVIL}, {"type": "link", "url": "javascript:alert(4)", "text": EVIL}]
    inline += [{"type": kind, key: EVIL[:200]} for kind, key in (("emoji", "name"), ("user", "user_id"))]
    section = {"type": "rich_text_section", "elements": inline}
    return [
        {"type": "header", "text": plain(EVIL[:30])},
        {"type": "section", "text": mrkdwn, "fields": [plain(EVIL), mrkdwn]},
        {"type": "context", "elements": [mrkdwn, {"type": "image", "image_url": "javascript:x", "alt_text": EVIL}]},
        {"type": "actions", "elements": [{"type": "button", "text": plain("<b>"), "url": "javascript:alert(5)"}]},
        {"type": "image", "image_url": "https://tracker.example/pixel", "alt_text": EVIL},
        {"type": "markdown", "text": EVIL},
        {"type": "rich_text", "elements": [section, {**section, "type": "rich_text_preformatted"}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": EVIL}, {"type": "rich_text", "elements": [section]}]]},
    ]


@pytest.mark.parametrize("sandbox_settings", [EVIL_SETTINGS])
async def test_nothing_that_is_said_becomes_an_element(
    sandbox: Sandbox, slack: AsyncWebClient, browser: httpx.AsyncClient
) -> None:
    """B070: names, texts, blocks, metadata, attachments and errors, on every page."""
    metadata = {"event_type": "evil", "event_payload": {EVIL: EVIL}}
    attachments = [{"text": EVIL, "title_link": "javascript:x"}]
    blocks = evil_blocks()
    await slack.chat_postMessage(channel=STATUS, text=EVIL, blocks=blocks, metadata=metadata, attachments=attachments)
    await slack.chat_postMessage(channel=STATUS, text=f"*{EVIL}* ```{EVIL}```")
    sandbox.faults.fail_next("chat.update", Fault.refused(EVIL), Fault.slow(), channel=EVIL)
    sandbox.faults.fail_next("chat.delete", Fault.refused(EVIL))
    for call in (slack.api_call(f"{EVIL[:60]}"), slack.chat_delete(channel=EVIL, ts=EVIL)):
        with pytest.raises(Exception, match="failed"):
            await call
    for path in PAGES:
        page = await browser.get(path)
        elements = elements_of(page.text)
        assert [(name, a) for name, a in elements if name in {"img", "iframe", "object", "style", "form"}] == []
        assert [a for name, a in elements if name == "script"] == [{"src": "/static/live.js", "defer": ""}]
        assert [a for _, a in elements if any(key.startswith("on") or key == "style" for key in a)] == []
        links = [a["href"] for _, a in elements if "href" in a]
        assert [href for href in links if not href.startswith(("/", "#", "https://a.example", "?"))] == []
        assert EVIL in text_of(page.text), "the text itself is shown, to the letter"
        assert "54444439" not in text_of(page.text), "and is no template"


@pytest.mark.parametrize("path", [*PAGES, "/static/live.js", "/channels/C0NONE", "/sandbox/log", "/nowhere"])
async def test_every_answer_to_a_browser_carries_the_headers(browser: httpx.AsyncClient, path: str) -> None:
    headers = (await browser.get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"


async def test_blocks_look_like_what_they_are(slack: AsyncWebClient, browser: httpx.AsyncClient) -> None:
    cells = [[{"type": "raw_text", "text": text} for text in row] for row in (("name", "count"), ("web", "3"))]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": plain("Services & more")},
        {"type": "section", "fields": [plain("one"), plain("two")]},
        {"type": "divider"},
        {"type": "table", "rows": cells, "column_settings": [{}, {"align": "right"}]},
    ]
    await slack.chat_postMessage(channel=STATUS, text="not shown beside blocks", blocks=blocks)
    page = await browser.get(f"/channels/{STATUS}")
    names = [name for name, _ in elements_of(page.text)]
    assert [names.count(name) for name in ("h3", "hr", "table", "thead", "tbody", "th", "td")] == [1, 1, 1, 1, 1, 2, 2]
    assert '<td class="right">3</td>' in page.text
    assert "Services & more" in text_of(page.text)


async def test_a_message_shows_its_author_its_local_time_and_its_edits(
    slack: AsyncWebClient, browser: httpx.AsyncClient, sandbox: Sandbox
) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    for _ in range(3):
        await slack.chat_update(channel=STATUS, ts=ts, text="2")
    sandbox.say(STATUS, "thanks")
    seen = text_of((await browser.get(f"/channels/{STATUS}")).text)
    assert "edited 3\N{MULTIPLICATION SIGN}" in seen
    assert "kizami" in seen
    assert "somebody" in seen
    assert "2 messages" in seen


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(time_zone="Asia/Tokyo")])
async def test_times_are_local_and_carry_their_zone(sandbox: Sandbox, browser: httpx.AsyncClient) -> None:
    sandbox.say(STATUS, "x")
    page = (await browser.get(f"/channels/{STATUS}")).text
    [time] = [a for name, a in elements_of(page) if name == "time"]
    assert time == {
        "datetime": "2026-11-30T09:53:20.123000+09:00",
        "title": "2026-11-30 09:53:20 Asia/Tokyo (GMT+09:00)",
    }
    assert "Asia/Tokyo (GMT+09:00)" in text_of(page)


@pytest.mark.parametrize("zone", ["Mars/Base", "+09:00", "", "../etc"])
def test_a_time_zone_that_is_none_is_refused_at_the_start(zone: str) -> None:
    with pytest.raises(ConfigurationError, match="time_zone"):
        Sandbox(SandboxSettings(time_zone=zone))


async def test_calls_show_outcomes_and_faults(
    sandbox: Sandbox, slack: AsyncWebClient, browser: httpx.AsyncClient
) -> None:
    sandbox.faults.fail_next("chat.postMessage", Fault.rate_limited(1), Fault.hang(9))
    sandbox.faults.mix = FaultMix(7, [(0.05, Fault.answer_lost())])
    with pytest.raises(Exception, match="ratelimited"):
        await slack.chat_postMessage(channel=STATUS, text="a text")
    seen = text_of((await browser.get("/calls")).text)
    for word in ("chat.postMessage", "ratelimited", "rate_limited", "hang", "answer_lost 5", "seed 7", "a text"):
        assert word in seen


async def test_an_unchanged_page_is_not_sent_again(sandbox: Sandbox, browser: httpx.AsyncClient) -> None:
    tag = (await browser.get(f"/channels/{STATUS}")).headers["etag"]
    again = await browser.get(f"/channels/{STATUS}", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    sandbox.say(STATUS, "news")
    assert (await browser.get(f"/channels/{STATUS}", headers={"if-none-match": tag})).status_code == 200


async def test_a_long_channel_is_shown_in_parts(
    sandbox: Sandbox, sandbox_clock: HandClock, browser: httpx.AsyncClient
) -> None:
    for number in range(150):
        sandbox.say(STATUS, f"message {number};")
        sandbox_clock.move(1)
    newest = (await browser.get(f"/channels/{STATUS}")).text
    assert "message 149;" in newest
    assert "message 49;" not in newest
    [older] = [a["href"] for name, a in elements_of(newest) if name == "a" and a["href"].startswith("?before=")]
    rest = (await browser.get(f"/channels/{STATUS}{older}")).text
    assert "message 49;" in rest
    assert "message 0;" in rest


async def test_an_unknown_channel_is_not_found(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/channels/C0NONE")).status_code == 404


@pytest.mark.parametrize("path", ["/static/sandbox.css", "/static/live.js", "/static/icon.svg"])
async def test_what_a_page_loads_is_there(browser: httpx.AsyncClient, path: str) -> None:
    assert (await browser.get(path)).status_code == 200
