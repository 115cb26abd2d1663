from __future__ import annotations

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import ALL_SCOPES, BotSeed, ChannelSeed, SandboxSettings
from tests.unit.sandbox_slack import ALERTS, STATUS, HandClock, error_of, refusal

pytest_plugins = ["tests.unit.sandbox_fixtures"]

DELIVERY = {"event_type": "kizami_delivery", "event_payload": {"delivery": "d-1"}}
CHANNELS = (
    ChannelSeed(STATUS, "status"),
    ChannelSeed("C0OLD", "old", is_archived=True),
    ChannelSeed("C0OUT", "outside", is_member=False),
    ChannelSeed("C0HIDDEN", "hidden", is_private=True, is_member=False),
    ChannelSeed("C0ROOM", "room", is_private=True),
)


@pytest.fixture
def sandbox_settings() -> SandboxSettings:
    return SandboxSettings(channels=CHANNELS, rate_limited=False)


def texts(answer: object) -> list[str]:
    assert hasattr(answer, "data")
    return [message["text"] for message in answer.data["messages"]]


async def post_each_second(slack: AsyncWebClient, clock: HandClock, count: int) -> list[str]:
    """Post 1, 2, 3, … a second apart and return their ts."""
    found = []
    for number in range(1, count + 1):
        found.append((await slack.chat_postMessage(channel=STATUS, text=str(number)))["ts"])
        clock.move(1)
    return found


async def test_history_is_newest_first(sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    await post_each_second(slack, sandbox_clock, 3)
    answer = await slack.conversations_history(channel=STATUS)
    assert texts(answer) == ["3", "2", "1"]
    assert answer["has_more"] is False
    assert "response_metadata" not in answer.data


async def test_cursors_reach_every_message_once_while_others_post(
    sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    await post_each_second(slack, sandbox_clock, 7)
    seen: list[str] = []
    async for page in await slack.conversations_history(channel=STATUS, limit=3):
        seen += [message["text"] for message in page["messages"]]
        await slack.chat_postMessage(channel=STATUS, text="new")
    assert seen == ["7", "6", "5", "4", "3", "2", "1"]


async def test_the_log_says_which_part_of_a_history_was_shown(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    first, second, third = await post_each_second(slack, sandbox_clock, 3)
    await slack.conversations_history(channel=STATUS, oldest=first, latest=third)
    async for _ in await slack.conversations_history(channel=STATUS, oldest=first, inclusive=True, limit=2):
        pass
    one, two, three = (int(ts.replace(".", "")) for ts in (first, second, third))
    whole, newer, older = (entry.span for entry in sandbox.log.calls("conversations.history", STATUS))
    assert whole == (one + 1, three - 1)
    assert newer is not None
    assert newer[0] == two
    assert newer[1] > three
    assert older == (one, two - 1)


async def test_bounds_are_exclusive_unless_said_otherwise(sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    first, _, third = await post_each_second(slack, sandbox_clock, 3)
    between = await slack.conversations_history(channel=STATUS, oldest=first, latest=third)
    assert texts(between) == ["2"]
    whole = await slack.conversations_history(channel=STATUS, oldest=first, latest=third, inclusive=True)
    assert texts(whole) == ["3", "2", "1"]
    since = await slack.conversations_history(channel=STATUS, oldest=first.partition(".")[0])
    assert texts(since) == ["3", "2", "1"], "whole seconds are an instant as well"


async def test_payloads_are_withheld_unless_asked_for(slack: AsyncWebClient) -> None:
    await slack.chat_postMessage(channel=STATUS, text="x", metadata=DELIVERY)
    [plain] = (await slack.conversations_history(channel=STATUS))["messages"]
    assert plain["metadata"] == {"event_type": "kizami_delivery"}
    [whole] = (await slack.conversations_history(channel=STATUS, include_all_metadata=True))["messages"]
    assert whole["metadata"] == DELIVERY


async def test_replies_stay_in_their_thread_unless_broadcast(slack: AsyncWebClient) -> None:
    parent = (await slack.chat_postMessage(channel=STATUS, text="parent"))["ts"]
    await slack.chat_postMessage(channel=STATUS, text="reply", thread_ts=parent)
    await slack.chat_postMessage(channel=STATUS, text="loud reply", thread_ts=parent, reply_broadcast=True)
    assert texts(await slack.conversations_history(channel=STATUS)) == ["loud reply", "parent"]


async def test_a_person_is_seen_among_the_bots(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    sandbox.say(STATUS, "hello")
    [message] = (await slack.conversations_history(channel=STATUS))["messages"]
    assert message["user"] == "U0SOMEBODY"
    assert "bot_id" not in message


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "C0NONE"}, "channel_not_found"),
        ({"channel": "C0HIDDEN"}, "channel_not_found"),
        ({"channel": "C0OUT"}, "not_in_channel"),
        ({"channel": STATUS, "oldest": "yesterday"}, "invalid_ts_oldest"),
        ({"channel": STATUS, "latest": "-1"}, "invalid_ts_latest"),
        ({"channel": STATUS, "cursor": "bm90aGluZw=="}, "invalid_cursor"),
        ({"channel": STATUS, "cursor": "%%%"}, "invalid_cursor"),
        ({"channel": STATUS, "cursor": "bmV4dF90czp4"}, "invalid_cursor"),
        ({"channel": STATUS, "limit": "1000"}, "invalid_limit"),
        ({"channel": STATUS, "limit": "0"}, "invalid_limit"),
    ],
)
async def test_a_history_that_cannot_be_read_is_refused(
    slack: AsyncWebClient, arguments: dict[str, str], error: str
) -> None:
    call = slack.api_call("conversations.history", http_verb="GET", params=arguments)
    assert await error_of(call) == error


@pytest.mark.parametrize(
    "sandbox_settings", [SandboxSettings(bots=(BotSeed(scopes=ALL_SCOPES - {"channels:history"}),))]
)
async def test_history_without_its_scope_is_refused(slack: AsyncWebClient) -> None:
    """B086: the scope for history is missing."""
    body = await refusal(slack.conversations_history(channel=STATUS))
    assert (body["error"], body["needed"]) == ("missing_scope", "channels:history")
    assert body["provided"] == "channels:join,channels:read,chat:write,groups:history,groups:read"


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(history_limited=True)])
async def test_outside_the_marketplace_history_has_fifteen_messages_a_minute(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    """B086: at most 15 messages and 1 call a minute; the rest is behind the cursor, a minute later."""
    for number in range(40):
        sandbox.say(ALERTS, str(number))
    page = await slack.conversations_history(channel=ALERTS, limit=200)
    assert len(page["messages"]) == 15
    cursor = page["response_metadata"]["next_cursor"]
    sandbox_clock.move(59)
    assert await error_of(slack.conversations_history(channel=ALERTS, cursor=cursor)) == "ratelimited"
    sandbox_clock.move(1)
    assert len((await slack.conversations_history(channel=ALERTS, cursor=cursor))["messages"]) == 15


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(history_page_max=2, rate_limited=False)])
async def test_a_short_page_need_not_be_the_last(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    for number in range(5):
        sandbox.say(STATUS, str(number))
    page = await slack.conversations_history(channel=STATUS, limit=100)
    assert (len(page["messages"]), page["has_more"]) == (2, True)


async def test_info_tells_what_a_start_up_check_needs(slack: AsyncWebClient) -> None:
    outside = (await slack.conversations_info(channel="C0OUT", include_num_members=True))["channel"]
    assert (outside["is_member"], outside["is_archived"], outside["num_members"]) == (False, False, 0)
    assert (await slack.conversations_info(channel="C0OLD"))["channel"]["is_archived"] is True
    room = (await slack.conversations_info(channel="C0ROOM"))["channel"]
    assert [room[name] for name in ("is_private", "is_group", "is_channel", "is_member")] == [True, True, False, True]
    assert await error_of(slack.conversations_info(channel="C0HIDDEN")) == "channel_not_found"


async def test_joining_heals_not_in_channel(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    answer = await slack.conversations_join(channel="C0OUT")
    assert answer["channel"]["is_member"] is True
    assert "warning" not in answer.data
    await slack.chat_postMessage(channel="C0OUT", text="in")
    assert sandbox.log.calls("conversations.join")[0].effect == "join"


async def test_joining_twice_succeeds_with_a_warning(slack: AsyncWebClient) -> None:
    answer = await slack.conversations_join(channel=STATUS)
    assert answer["warning"] == "already_in_channel"
    assert answer["response_metadata"] == {"warnings": ["already_in_channel"]}


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("C0ROOM", "method_not_supported_for_channel_type"),
        ("C0HIDDEN", "channel_not_found"),
        ("C0OLD", "is_archived"),
    ],
)
async def test_some_channels_cannot_be_joined(slack: AsyncWebClient, channel: str, error: str) -> None:
    assert await error_of(slack.conversations_join(channel=channel)) == error


async def test_the_list_has_public_channels_unless_asked(slack: AsyncWebClient) -> None:
    def ids(answer: object) -> list[str]:
        assert hasattr(answer, "data")
        return [channel["id"] for channel in answer.data["channels"]]

    assert ids(await slack.conversations_list()) == ["C0OLD", "C0OUT", STATUS]
    assert ids(await slack.conversations_list(exclude_archived=True)) == ["C0OUT", STATUS]
    assert ids(await slack.conversations_list(types=["private_channel"])) == ["C0ROOM"]
    every = await slack.conversations_list(types="public_channel,private_channel,mpim,im")
    assert ids(every) == ["C0OLD", "C0OUT", "C0ROOM", STATUS]


async def test_the_list_is_paged(slack: AsyncWebClient) -> None:
    seen: list[str] = []
    async for page in await slack.conversations_list(limit=2, types="public_channel,private_channel"):
        assert len(page["channels"]) <= 2
        seen += [channel["id"] for channel in page["channels"]]
    assert seen == ["C0OLD", "C0OUT", "C0ROOM", STATUS]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"types": "everything"}, "invalid_types"),
        ({"limit": "-1"}, "invalid_limit"),
        ({"cursor": "x"}, "invalid_cursor"),
    ],
)
async def test_a_list_that_cannot_be_given_is_refused(
    slack: AsyncWebClient, arguments: dict[str, str], error: str
) -> None:
    assert await error_of(slack.api_call("conversations.list", http_verb="GET", params=arguments)) == error
