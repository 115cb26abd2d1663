from __future__ import annotations

from typing import Any

import httpx
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, ChannelSeed, SandboxSettings, TokenState
from tests.unit.sandbox_slack import ALERTS, STATUS, TOKEN, HandClock, error_of, refusal

pytest_plugins = ["tests.unit.sandbox_fixtures"]

DIVIDER = {"type": "divider"}
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "*ok*"}}
CHANNELS = (
    ChannelSeed(STATUS, "status"),
    ChannelSeed("C0OUT", "outside", is_member=False),
    ChannelSeed("C0HIDDEN", "hidden", is_private=True, is_member=False),
    ChannelSeed("C0ROOM", "room", is_private=True),
    ChannelSeed("C0OLD", "old", is_archived=True),
)
BOTS = (
    BotSeed(),
    BotSeed("xoxb-other", "other"),
    BotSeed("xoxb-mute", "mute", scopes=frozenset({"channels:read"})),
    BotSeed("xoxb-loud", "loud", scopes=frozenset({"chat:write", "chat:write.public"})),
    BotSeed("xoxb-gone", "gone", state=TokenState.INACTIVE),
    BotSeed("xoxb-old", "old", state=TokenState.REVOKED),
)
DELIVERY = {"event_type": "kizami_delivery", "event_payload": {"delivery": "d-1"}}


@pytest.fixture
def sandbox_settings() -> SandboxSettings:
    return SandboxSettings(channels=CHANNELS, bots=BOTS, rate_limited=False)


def other(slack: AsyncWebClient, token: str | None) -> AsyncWebClient:
    return AsyncWebClient(token, base_url=slack.base_url, retry_handlers=[])


async def test_a_post_is_stored_as_sent_and_answered_as_stored(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """What comes back is not what was sent: addresses are linked, ids and defaults are filled in."""
    text = "a & b &amp; https://a.example"
    answer = await slack.chat_postMessage(channel=STATUS, text=text, blocks=[SECTION], metadata=DELIVERY)
    [message] = sandbox.workspace.messages(STATUS)
    assert (message.content.text, message.content.blocks) == (text, (SECTION,))
    assert answer["ts"] == message.ts
    shown = answer["message"]
    assert shown["text"] == "a &amp; b &amp; <https://a.example>"
    assert shown["blocks"][0]["text"] == {"type": "mrkdwn", "verbatim": False, "text": "*ok*"}
    assert shown["blocks"][0]["block_id"]
    assert shown["metadata"] == DELIVERY
    assert "warning" not in answer.data


async def test_a_public_channel_may_be_named_and_its_id_is_answered(slack: AsyncWebClient) -> None:
    assert (await slack.chat_postMessage(channel="#status", text="x"))["channel"] == STATUS
    assert (await slack.chat_postMessage(channel="status", text="x"))["channel"] == STATUS
    assert await error_of(slack.chat_postMessage(channel="room", text="x")) == "channel_not_found"


async def test_a_ts_is_unique_and_grows_even_when_the_clock_steps_back(
    sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    first = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    second = (await slack.chat_postMessage(channel=STATUS, text="2"))["ts"]
    sandbox_clock.wall_ms -= 3_600_000
    third = (await slack.chat_postMessage(channel=STATUS, text="3"))["ts"]
    assert [first, second, third] == ["1796000000.123000", "1796000000.123001", "1796000000.123002"]


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("C0NONE", "channel_not_found"),
        ("C0HIDDEN", "channel_not_found"),
        ("C0OUT", "not_in_channel"),
        ("C0OLD", "is_archived"),
        ("", "invalid_arguments"),
    ],
)
async def test_a_channel_that_cannot_be_posted_in_is_refused(
    sandbox: Sandbox, slack: AsyncWebClient, channel: str, error: str
) -> None:
    assert await error_of(slack.chat_postMessage(channel=channel, text="x")) == error
    assert sandbox.log.posts() == []


async def test_a_bot_with_the_public_scope_need_not_join(slack: AsyncWebClient) -> None:
    assert (await other(slack, "xoxb-loud").chat_postMessage(channel="C0OUT", text="x"))["ok"]


@pytest.mark.parametrize(
    ("token", "error"),
    [
        (None, "not_authed"),
        ("xoxb-unknown", "invalid_auth"),
        ("xoxb-gone", "account_inactive"),
        ("xoxb-old", "token_revoked"),
    ],
)
async def test_a_token_that_does_not_open_is_refused(slack: AsyncWebClient, token: str | None, error: str) -> None:
    assert await error_of(other(slack, token).auth_test()) == error


async def test_a_missing_scope_is_named(slack: AsyncWebClient) -> None:
    body = await refusal(other(slack, "xoxb-mute").chat_postMessage(channel=STATUS, text="x"))
    assert body == {"ok": False, "error": "missing_scope", "needed": "chat:write", "provided": "channels:read"}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "no_text"),
        ({"text": ""}, "no_text"),
        ({"text": "  \n"}, "no_text"),
        ({"blocks": []}, "no_text"),
        ({"blocks": {"blocks": []}}, "invalid_blocks_format"),
        ({"blocks": "[{"}, "invalid_blocks_format"),
        ({"blocks": [DIVIDER] * 51}, "invalid_blocks"),
        ({"text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"markdown_text": "y" * 12_001}, "msg_too_long"),
        ({"text": "x", "attachments": [{"text": "y"}] * 101}, "too_many_attachments"),
        ({"text": "x", "attachments": [{"wrong": "y"}]}, "invalid_attachments"),
        ({"text": "x", "attachments": {"text": "y"}}, "invalid_attachments"),
        ({"text": "x", "attachments": ["y"]}, "invalid_attachments"),
        ({"text": "x", "attachments": [{"color": "#fff"}]}, "invalid_attachments"),
        ({"text": "x", "attachments": [{"blocks": [{"type": "no"}]}]}, "invalid_blocks"),
        ({"text": "x", "metadata": "[1]"}, "invalid_metadata_format"),
        ({"text": "x", "metadata": "{"}, "invalid_metadata_format"),
        ({"text": "x", "thread_ts": "1796000000.000001"}, "thread_not_found"),
    ],
)
async def test_content_that_slack_would_not_take_is_refused(
    sandbox: Sandbox, slack: AsyncWebClient, content: dict[str, Any], error: str
) -> None:
    assert await error_of(slack.api_call("chat.postMessage", json={"channel": STATUS, **content})) == error
    assert sandbox.workspace.messages(STATUS) == []


async def test_invalid_blocks_say_where(slack: AsyncWebClient) -> None:
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}
    body = await refusal(slack.chat_postMessage(channel=STATUS, text="x", blocks=[DIVIDER, long]))
    line = "must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
    assert body["errors"] == [line]
    assert body["response_metadata"] == {"messages": [f"[ERROR] {line}"]}


async def test_a_text_over_forty_thousand_is_cut_with_a_warning(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B083 (c): delivered, but with a warning."""
    answer = await slack.chat_postMessage(channel=STATUS, text="x" * 40_001)
    assert answer["warning"] == "message_truncated"
    assert answer["response_metadata"] == {"warnings": ["message_truncated"]}
    assert len(sandbox.workspace.messages(STATUS)[0].content.text) == 40_000


@pytest.mark.parametrize(
    "metadata",
    [
        {"event_type": "kizami.delivery", "event_payload": {"delivery": "d-1"}},
        {"event_type": "", "event_payload": {}},
        {"event_type": "kizami_delivery"},
        {"event_type": "kizami_delivery", "event_payload": {"deep": {"deeper": {"deepest": 1}}}},
    ],
)
async def test_metadata_of_a_bad_schema_is_dropped_and_the_post_succeeds(
    slack: AsyncWebClient, metadata: dict[str, Any]
) -> None:
    answer = await slack.chat_postMessage(channel=STATUS, text="x", metadata=metadata)
    assert answer["warning"] == "invalid_metadata_schema"
    assert "metadata" not in answer["message"]


async def test_metadata_that_is_too_large_is_refused(slack: AsyncWebClient) -> None:
    metadata = {"event_type": "big", "event_payload": {"key": "x" * 8_192}}
    assert await error_of(slack.chat_postMessage(channel=STATUS, text="x", metadata=metadata)) == "metadata_too_large"


async def test_an_edit_keeps_the_ts_and_counts(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1", metadata=DELIVERY))["ts"]
    await slack.chat_update(channel=STATUS, ts=ts, text="2")
    answer = await slack.chat_update(channel=STATUS, ts=ts, text="3")
    [message] = sandbox.workspace.messages(STATUS)
    assert (answer["ts"], message.content.text, message.edits) == (ts, "3", 2)
    assert message.content.metadata == DELIVERY, "metadata left out of an edit is kept"
    assert answer["message"]["edited"] == {"user": "U0KIZAMI", "ts": "1796000000.123000"}


async def test_an_edit_with_text_alone_removes_the_blocks(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1", blocks=[SECTION]))["ts"]
    answer = await slack.chat_update(channel=STATUS, ts=ts, text="2", blocks=[DIVIDER])
    assert "edited" not in answer["message"], "an edit with blocks doesn't show the label"
    await slack.chat_update(channel=STATUS, ts=ts, text="2")
    assert sandbox.workspace.messages(STATUS)[0].content.blocks == ()


async def test_empty_metadata_in_an_edit_removes_it(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1", metadata=DELIVERY))["ts"]
    await slack.chat_update(channel=STATUS, ts=ts, text="2", metadata={})
    assert sandbox.workspace.messages(STATUS)[0].content.metadata is None


async def test_what_can_be_posted_cannot_always_be_edited(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B083 (a): a text of 5,000 characters is posted, but not as an edit."""
    ts = (await slack.chat_postMessage(channel=STATUS, text="x" * 5_000))["ts"]
    assert await error_of(slack.chat_update(channel=STATUS, ts=ts, text="x" * 5_000)) == "msg_too_long"
    assert sandbox.workspace.messages(STATUS)[0].edits == 0
    await slack.chat_update(channel=STATUS, ts=ts, text="x" * 4_000)


@pytest.mark.parametrize("ts", ["1796000000.12300", "1796000000.1230000", "1796000001.123000", "1796000000", "x"])
async def test_a_ts_that_is_not_to_the_letter_names_nothing(slack: AsyncWebClient, ts: str) -> None:
    await slack.chat_postMessage(channel=STATUS, text="1")
    assert await error_of(slack.chat_update(channel=STATUS, ts=ts, text="2")) == "message_not_found"


async def test_nobody_edits_or_deletes_what_another_wrote(slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="mine"))["ts"]
    stranger = other(slack, "xoxb-other")
    assert await error_of(stranger.chat_update(channel=STATUS, ts=ts, text="x")) == "cant_update_message"
    assert await error_of(stranger.chat_delete(channel=STATUS, ts=ts)) == "cant_delete_message"


async def test_a_message_of_an_archived_channel_is_not_edited(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    sandbox.workspace.channel(STATUS).is_archived = True
    assert await error_of(slack.chat_update(channel=STATUS, ts=ts, text="2")) == "is_inactive"


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(edit_window_s=300, time_scale=60, rate_limited=False)])
async def test_the_edit_window_closes_in_sandbox_time(sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    sandbox_clock.move(4.9)
    await slack.chat_update(channel=STATUS, ts=ts, text="2")
    sandbox_clock.move(0.2)
    assert await error_of(slack.chat_update(channel=STATUS, ts=ts, text="3")) == "edit_window_closed"


async def test_a_deleted_message_is_gone_for_every_method(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    await slack.chat_delete(channel=STATUS, ts=ts)
    assert await error_of(slack.chat_update(channel=STATUS, ts=ts, text="2")) == "message_not_found"
    assert await error_of(slack.chat_delete(channel=STATUS, ts=ts)) == "message_not_found"
    assert await error_of(slack.chat_getPermalink(channel=STATUS, message_ts=ts)) == "message_not_found"
    assert sandbox.log.calls("chat.delete")[0].effect == "delete"


async def test_a_permalink_leads_to_the_page(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="find me"))["ts"]
    link = (await slack.chat_getPermalink(channel=STATUS, message_ts=ts))["permalink"]
    assert link == f"{sandbox.url}/archives/{STATUS}/p1796000000123000"
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        page = await browser.get(link)
    assert page.url.fragment == "p1796000000123000"
    assert 'id="p1796000000123000"' in page.text


async def test_a_permalink_of_a_reply_names_its_thread(slack: AsyncWebClient) -> None:
    parent = (await slack.chat_postMessage(channel=STATUS, text="parent"))["ts"]
    reply = (await slack.chat_postMessage(channel=STATUS, text="reply", thread_ts=parent))["ts"]
    link = (await slack.chat_getPermalink(channel=STATUS, message_ts=reply))["permalink"]
    assert link.endswith(f"/p{reply.replace('.', '')}?thread_ts={parent}&cid={STATUS}")


async def test_markdown_stands_in_for_text(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    await slack.chat_postMessage(channel=STATUS, markdown_text="**b**" * 2_400)
    assert len(sandbox.workspace.messages(STATUS)[0].content.text) == 12_000


async def test_auth_test_tells_who_the_token_is(slack: AsyncWebClient) -> None:
    answer = await slack.auth_test()
    assert (answer["user"], answer["user_id"], answer["bot_id"]) == ("kizami", "U0KIZAMI", "B0KIZAMI")
    assert "chat:write" in answer.headers["x-oauth-scopes"]


async def test_an_unknown_method_is_refused(slack: AsyncWebClient) -> None:
    assert await error_of(slack.api_call("chat.shout")) == "unknown_method"


async def test_a_post_is_not_made_by_get(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    call = slack.api_call("chat.postMessage", http_verb="GET", params={"channel": STATUS, "text": "x"})
    assert await error_of(call) == "invalid_post_type"
    assert sandbox.log.posts() == []


async def test_a_form_posts_as_well_as_json(sandbox: Sandbox) -> None:
    form = {"token": TOKEN, "channel": STATUS, "text": "x", "blocks": '[{"type": "divider"}]'}
    async with httpx.AsyncClient(trust_env=False) as browser:
        answer = await browser.post(f"{sandbox.api_url}chat.postMessage", data=form)
    assert answer.json()["ok"]
    assert sandbox.workspace.messages(STATUS)[0].content.blocks == (DIVIDER,)


async def test_a_method_without_json_misses_what_json_says(sandbox: Sandbox) -> None:
    async with httpx.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {TOKEN}"}) as browser:
        answer = await browser.post(f"{sandbox.api_url}conversations.info", json={"channel": STATUS})
    assert answer.json()["error"] == "invalid_arguments"


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(messages_kept=3, rate_limited=False)])
async def test_a_channel_keeps_its_newest_messages(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    for number in range(5):
        await slack.chat_postMessage(channel=ALERTS, text=str(number))
    assert [message.content.text for message in sandbox.workspace.messages(ALERTS)] == ["2", "3", "4"]
    assert len(sandbox.log.posts(ALERTS)) == 5
