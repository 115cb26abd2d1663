from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.methods import METHODS, Rate
from kizami.sandbox.rate_limits import RateLimiter
from kizami.sandbox.sandbox_time import SandboxTime
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, Rates, SandboxSettings
from tests.unit.sandbox_slack import ALERTS, STATUS, HandClock, error_of

pytest_plugins = ["tests.unit.sandbox_fixtures"]


@pytest.fixture
def sandbox_settings() -> SandboxSettings:
    return SandboxSettings(bots=(BotSeed(), BotSeed("xoxb-other", "other")))


def admitted(limiter: RateLimiter, method: str, now_ms: int, *, channel: str = STATUS, app: str = "A1") -> bool:
    return not limiter.admit(app, method, METHODS[method].rate, channel, now_ms)


@pytest.mark.parametrize(
    ("method", "count"),
    [
        ("conversations.list", 20),
        ("chat.update", 50),
        ("chat.delete", 50),
        ("conversations.history", 50),
        ("conversations.info", 50),
        ("conversations.join", 50),
        ("auth.test", 300),
    ],
)
def test_a_method_has_the_calls_of_its_tier_in_any_minute(method: str, count: int) -> None:
    limiter = RateLimiter(SandboxSettings())
    times = [index * 10 for index in range(count)]
    assert all(admitted(limiter, method, at) for at in times)
    assert not admitted(limiter, method, 59_999), "the window slides: the first call is still in it"
    assert admitted(limiter, method, 60_000)
    assert not admitted(limiter, method, 60_001), "only one has left it"


def test_refused_calls_are_not_counted() -> None:
    limiter = RateLimiter(SandboxSettings(rates=Rates(tier_2=1)))
    assert admitted(limiter, "conversations.list", 0)
    assert not any(admitted(limiter, "conversations.list", at) for at in range(1, 60_000, 500))
    assert admitted(limiter, "conversations.list", 60_000)


def test_methods_and_apps_have_windows_of_their_own() -> None:
    limiter = RateLimiter(SandboxSettings(rates=Rates(tier_3=1)))
    assert admitted(limiter, "chat.update", 0)
    assert not admitted(limiter, "chat.update", 1)
    assert admitted(limiter, "chat.delete", 1)
    assert admitted(limiter, "chat.update", 1, app="A2")


def test_posts_may_burst_and_then_come_one_a_second() -> None:
    limiter = RateLimiter(SandboxSettings())
    burst = [admitted(limiter, "chat.postMessage", 0) for _ in range(5)]
    assert burst == [True, True, True, True, False]
    paced = [at for at in range(100, 10_000, 100) if admitted(limiter, "chat.postMessage", at)]
    assert paced == [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000]


def test_one_busy_channel_does_not_hold_up_another() -> None:
    limiter = RateLimiter(SandboxSettings())
    assert not all(admitted(limiter, "chat.postMessage", 0, channel=STATUS) for _ in range(5))
    assert admitted(limiter, "chat.postMessage", 0, channel=ALERTS)


def test_posts_in_all_channels_share_a_cap() -> None:
    limiter = RateLimiter(SandboxSettings(rates=Rates(posts_per_window=10)))
    passed = [admitted(limiter, "chat.postMessage", 0, channel=f"C{number}") for number in range(11)]
    assert passed == [True] * 10 + [False]


def test_without_limits_nothing_is_counted() -> None:
    limiter = RateLimiter(SandboxSettings(rate_limited=False))
    assert all(admitted(limiter, "chat.postMessage", 0) for _ in range(1_000))


def test_a_closed_gate_holds_even_without_limits() -> None:
    limiter = RateLimiter(SandboxSettings(rate_limited=False))
    limiter.close("A1", "chat.postMessage", Rate.POSTING, STATUS, 7_000)
    assert limiter.admit("A1", "chat.postMessage", Rate.POSTING, STATUS, 1_000) == 6_000
    assert admitted(limiter, "chat.postMessage", 1_000, channel=ALERTS)
    assert admitted(limiter, "chat.postMessage", 7_000)


async def test_too_many_posts_are_answered_429_with_whole_seconds(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B074: the answer names the wait, and nothing is stored."""
    for _ in range(4):
        await slack.chat_postMessage(channel=STATUS, text="x")
    with pytest.raises(SlackApiError) as refused:
        await slack.chat_postMessage(channel=STATUS, text="x")
    answer = refused.value.response
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert answer.data == {"ok": False, "error": "ratelimited"}
    assert len(sandbox.log.posts(STATUS)) == 4
    assert sandbox.log.calls()[-1].outcome == "ratelimited"
    await slack.chat_postMessage(channel=ALERTS, text="another channel is open")


async def test_waiting_as_told_is_enough(sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    for _ in range(20):
        await slack.conversations_list()
    with pytest.raises(SlackApiError) as refused:
        await slack.conversations_list()
    sandbox_clock.move(int(refused.value.response.headers["Retry-After"]))
    await slack.conversations_list()


async def test_the_limit_is_the_apps(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    for _ in range(20):
        await slack.conversations_list()
    assert await error_of(slack.conversations_list()) == "ratelimited"
    other = AsyncWebClient("xoxb-other", base_url=sandbox.api_url, retry_handlers=[])
    await other.conversations_list()


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(time_scale=60, rates=Rates(tier_2=1))])
async def test_a_time_scale_shortens_windows_and_waits(sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    """At 60 a minute's window passes in a second, and the wait that callers are told is in their own seconds."""
    await slack.conversations_list()
    with pytest.raises(SlackApiError) as refused:
        await slack.conversations_list()
    assert refused.value.response.headers["Retry-After"] == "1"
    sandbox_clock.move(1)
    await slack.conversations_list()


@pytest.mark.parametrize(("wait_ms", "told"), [(1, 1), (1_000, 1), (1_001, 2), (59_400, 60)])
def test_a_wait_is_rounded_up_to_whole_seconds(wait_ms: int, told: int) -> None:
    assert SandboxTime(HandClock()).whole_real_seconds(wait_ms) == told
