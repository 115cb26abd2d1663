from __future__ import annotations

import asyncio

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.hooks import Call, Phase
from kizami.sandbox.server import Sandbox
from tests.unit.sandbox_slack import ALERTS, STATUS

pytest_plugins = ["tests.unit.sandbox_fixtures"]

POST = "chat.postMessage"


class Holding:
    """A hook that holds its call until it is let go."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, call: Call) -> None:
        self.calls.append(call)
        self.reached.set()
        await self.let_go.wait()


async def drop(call: Call) -> None:
    call.drop()


async def test_a_received_call_is_held_before_anything_is_accepted(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """The moment to kill a client whose post must not have happened."""
    hold = Holding()
    sandbox.hooks.add(Phase.RECEIVED, hold, method=POST)
    call = asyncio.create_task(slack.chat_postMessage(channel=STATUS, text="x"))
    await hold.reached.wait()
    assert hold.calls[0].arguments.text("text") == "x"
    assert sandbox.log.posts() == []
    hold.let_go.set()
    assert (await call)["ok"]


async def test_an_accepted_call_is_held_before_it_is_answered(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B076: the moment to kill a client between acceptance and marker."""
    hold = Holding()
    sandbox.hooks.add(Phase.ACCEPTED, hold, method=POST)
    call = asyncio.create_task(slack.chat_postMessage(channel=STATUS, text="x"))
    await hold.reached.wait()
    [entry] = sandbox.log.posts()
    assert entry is hold.calls[0].entry
    assert (entry.answered, call.done()) == (False, False)
    hold.let_go.set()
    assert (await call)["ts"] == entry.ts


async def test_hooks_see_only_the_calls_they_asked_for(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    seen: list[str] = []

    async def note(call: Call) -> None:
        seen.append(f"{call.method} {call.channel}")

    sandbox.hooks.add(Phase.RECEIVED, note, method=POST, channel=ALERTS)
    remove = sandbox.hooks.add(Phase.ACCEPTED, note)
    await slack.auth_test()
    await slack.chat_postMessage(channel="#alerts", text="x")
    await slack.chat_postMessage(channel=STATUS, text="x")
    assert seen == [f"{POST} {ALERTS}", f"{POST} {ALERTS}", f"{POST} {STATUS}"], "a read accepts nothing"
    remove()
    await slack.chat_postMessage(channel=STATUS, text="x")
    assert len(seen) == 3


@pytest.mark.parametrize(("phase", "posts"), [(Phase.RECEIVED, 0), (Phase.ACCEPTED, 1)])
async def test_a_hook_may_drop_the_connection(
    sandbox: Sandbox, slack: AsyncWebClient, phase: Phase, posts: int
) -> None:
    sandbox.hooks.add(phase, drop)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await slack.chat_postMessage(channel=STATUS, text="x")
    assert len(sandbox.log.posts()) == posts
    assert not sandbox.log.calls(POST)[0].answered


async def test_held_calls_do_not_keep_a_sandbox_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends at once, and without a word in the log of the server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    sandbox, hold = Sandbox(), Holding()
    sandbox.hooks.add(Phase.RECEIVED, hold)
    async with sandbox.serving():
        client = AsyncWebClient("xoxb-sandbox", base_url=sandbox.api_url, retry_handlers=[])
        call = asyncio.create_task(client.auth_test())
        await hold.reached.wait()
    with pytest.raises(aiohttp.ClientConnectionError):
        await call
    assert caplog.records == []
