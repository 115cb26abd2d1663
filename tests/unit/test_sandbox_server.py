from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.core.errors import ConfigurationError
from kizami.sandbox.faults import Fault
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, ChannelSeed, Rates, SandboxSettings
from tests.unit.sandbox_slack import STATUS, TOKEN

pytest_plugins = ["kizami.testing.slack_sandbox"]

_PROGRAM = """
from kizami.sandbox.server import run_sandbox
from kizami.sandbox.settings import BotSeed, ChannelSeed, Rates, SandboxSettings

run_sandbox(SandboxSettings(team="from a program"), port=0, on_ready=lambda sandbox: print(sandbox.url, flush=True))
print("ended")
"""


@pytest.fixture
def slack_sandbox_settings() -> SandboxSettings:
    return SandboxSettings(team="as the test wants it")


async def test_the_fixture_is_a_slack_on_loopback(
    slack_sandbox: Sandbox, slack_sandbox_settings: SandboxSettings
) -> None:
    client = AsyncWebClient(TOKEN, base_url=slack_sandbox.api_url, retry_handlers=[])
    assert (await client.auth_test())["team"] == slack_sandbox_settings.team
    await client.chat_postMessage(channel=STATUS, text="hello")
    assert slack_sandbox.log.posts(STATUS)[0].text == "hello"
    assert not {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} & os.environ.keys()


async def test_it_takes_calls_when_it_yields_and_none_after() -> None:
    async with Sandbox().serving() as url, httpx.AsyncClient(trust_env=False) as browser:
        assert (await browser.get(url)).status_code == 200
    async with httpx.AsyncClient(trust_env=False) as browser:
        with pytest.raises(httpx.ConnectError):
            await browser.get(url)


async def test_slack_can_go_away_and_come_back() -> None:
    """What was posted is still there, under the same address."""
    sandbox = Sandbox()
    async with sandbox.serving() as url:
        sandbox.say(STATUS, "before")
    port = httpx.URL(url).port
    assert port is not None
    async with sandbox.serving(port=port) as again:
        assert again == url
        assert [message.content.text for message in sandbox.workspace.messages(STATUS)] == ["before"]


async def test_a_port_that_is_taken_is_named() -> None:
    async with Sandbox().serving() as url:
        port = httpx.URL(url).port
        assert port is not None
        with pytest.raises(ConfigurationError, match=f"127.0.0.1 port {port}.*another port"):
            async with Sandbox().serving(port=port):
                pass


async def test_it_listens_on_ipv6_too() -> None:
    async with Sandbox().serving("::1") as url, httpx.AsyncClient(trust_env=False) as browser:
        assert url.startswith("http://[::1]:")
        assert (await browser.get(f"{url}/sandbox/log")).status_code == 200


async def test_without_a_socket_of_ours_the_api_still_answers() -> None:
    """Any ASGI server will do, but only our own can lose an answer."""
    sandbox = Sandbox()
    transport = httpx.ASGITransport(sandbox.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.post("/api/auth.test", headers=headers)).json()["ok"]
        sandbox.faults.fail_next("auth.test", Fault.answer_lost())
        with pytest.raises(ConnectionResetError):
            await client.post("/api/auth.test", headers=headers)


async def test_a_body_without_end_is_refused(slack_sandbox: Sandbox) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{slack_sandbox.api_url}chat.postMessage", content=b"x" * 1_100_000)
    assert answer.status_code == 413
    assert slack_sandbox.log.entries == ()


async def test_a_caller_that_dies_in_the_middle_of_its_body_has_not_called(
    slack_sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    url = httpx.URL(slack_sandbox.url)
    assert url.port is not None
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"POST /api/auth.test HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    client = AsyncWebClient(TOKEN, base_url=slack_sandbox.api_url, retry_handlers=[])
    await client.auth_test()
    assert len(slack_sandbox.log.entries) == 1
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


async def test_a_reset_from_python_empties_it_too(slack_sandbox: Sandbox) -> None:
    slack_sandbox.say(STATUS, "x")
    await slack_sandbox.reset()
    assert slack_sandbox.workspace.messages(STATUS) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_as_a_program_it_ends_on_a_signal(number: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path("src").resolve())}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        assert "from a program" in httpx.get(url, trust_env=False).text
        program.send_signal(number)
        assert program.stdout.read() == "ended\n"
    assert program.returncode == 0


async def test_two_sandboxes_share_nothing() -> None:
    one, other = Sandbox(), Sandbox()
    async with one.serving(), other.serving():
        one.say(STATUS, "here")
        assert other.workspace.messages(STATUS) == []


@pytest.mark.usefixtures("slack_sandbox")  # it takes the proxies away
async def test_closing_waits_for_nothing_that_is_to_be_accepted_late() -> None:
    sandbox = Sandbox()
    async with sandbox.serving():
        client = AsyncWebClient(TOKEN, base_url=sandbox.api_url, retry_handlers=[])
        sandbox.faults.fail_next("chat.postMessage", Fault.accepted_late(3_600))
        with pytest.raises(Exception, match="disconnected"):
            await client.chat_postMessage(channel=STATUS, text="x")
    assert sandbox.log.posts() == []
    assert [task for task in asyncio.all_tasks() if "late" in task.get_name()] == []


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("time_scale", {"time_scale": 0}),
        ("edit_window_s", {"edit_window_s": -1}),
        ("rates", {"rates": Rates(posts_per_second=0)}),
        ("messages_kept", {"messages_kept": 0}),
        ("channels", {"channels": (ChannelSeed("C1", "a"), ChannelSeed("C1", "b"))}),
        ("channels", {"channels": (ChannelSeed("C1", "a"), ChannelSeed("C2", "a"))}),
        ("channels", {"channels": (ChannelSeed("", "a"),)}),
        ("bots", {"bots": (BotSeed(), BotSeed(name="twin"))}),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(field: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"SandboxSettings.{field}"):
        SandboxSettings(**settings)
