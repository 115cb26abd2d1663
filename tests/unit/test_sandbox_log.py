from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.faults import Fault
from kizami.sandbox.log import digest
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from tests.unit.sandbox_slack import ALERTS, STATUS

pytest_plugins = ["tests.unit.sandbox_fixtures"]

BLOCKS = [{"type": "divider"}]


async def deliver(slack: AsyncWebClient, delivery: str, channel: str = ALERTS) -> None:
    metadata = {"event_type": "kizami_delivery", "event_payload": {"delivery": delivery}}
    await slack.chat_postMessage(channel=channel, text=delivery, metadata=metadata)


async def test_the_log_counts_posts_edits_and_duplicates(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    for delivery in ("d-1", "d-2", "d-2", "d-3"):
        await deliver(slack, delivery)
    ts = (await slack.chat_postMessage(channel=STATUS, text="board"))["ts"]
    for text in ("1", "2"):
        await slack.chat_update(channel=STATUS, ts=ts, text=text)
    log = sandbox.log
    assert (len(log.posts()), len(log.posts(ALERTS)), len(log.posts(STATUS))) == (5, 4, 1)
    assert [entry.text for entry in log.edits(STATUS, ts)] == ["1", "2"]
    assert log.edits(STATUS, "1.000000") == []
    assert [entry.seq for entry in log.duplicates("delivery")["d-2"]] == [2, 3]
    assert log.duplicates("delivery").keys() == {"d-2"}
    assert log.duplicates("other") == {}


async def test_an_entry_keeps_what_was_said_then(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    ts = (await slack.chat_postMessage(channel=STATUS, text="1", blocks=BLOCKS))["ts"]
    await slack.chat_update(channel=STATUS, ts=ts, text="2")
    post, edit = sandbox.log.entries
    assert (post.text, post.blocks_digest) == ("1", digest(BLOCKS))
    assert (edit.text, edit.blocks_digest) == ("2", None)
    assert post.at == 1_796_000_000_123


async def test_refusals_are_logged_and_count_for_nothing(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    stranger = AsyncWebClient("xoxb-nobody", base_url=sandbox.api_url, retry_handlers=[])
    for call in (
        slack.chat_postMessage(channel="C0NONE", text="x"),
        stranger.auth_test(),
        slack.api_call("chat.shout"),
    ):
        with pytest.raises(Exception, match="failed"):
            await call
    assert [(entry.method, entry.outcome, entry.effect) for entry in sandbox.log.entries] == [
        ("chat.postMessage", "channel_not_found", None),
        ("auth.test", "invalid_auth", None),
        ("chat.shout", "unknown_method", None),
    ]
    assert sandbox.log.posts() == []


async def test_every_acceptance_is_in_the_file_before_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor in another process reads the truth from there, whatever dies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "sandbox.jsonl"
    sandbox = Sandbox(SandboxSettings(log_file=file))
    async with sandbox.serving():
        slack = AsyncWebClient("xoxb-sandbox", base_url=sandbox.api_url, retry_handlers=[])
        await deliver(slack, "d-1 \ud800")
        sandbox.faults.fail_next("chat.postMessage", Fault.answer_lost())
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await deliver(slack, "d-2")
    first, answered, second = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert (first["seq"], first["outcome"], first["effect"], first["channel"]) == (1, "ok", "post", ALERTS)
    assert answered == {"seq": 1, "answered": True}
    assert (second["seq"], second["fault"], second["metadata"]["event_payload"]) == (
        2,
        "answer_lost",
        {"delivery": "d-2"},
    )


async def test_whoever_waits_for_the_log_is_woken_by_what_is_accepted(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    waiting = asyncio.create_task(sandbox.log.until(lambda log: len(log.posts(ALERTS)) == 2))
    given_up = asyncio.create_task(sandbox.log.until(lambda log: log.last_seq > 99))
    await deliver(slack, "d-1")
    given_up.cancel()
    assert not waiting.done()
    await deliver(slack, "d-2")
    await waiting
    await sandbox.log.until(lambda log: log.posts()[0].answered)


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(entries_kept=2, rate_limited=False)])
async def test_the_log_in_memory_is_bounded(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    for number in range(3):
        await deliver(slack, str(number))
    assert [entry.seq for entry in sandbox.log.entries] == [2, 3]
    assert sandbox.log.last_seq == 3


@pytest.mark.parametrize(
    ("one", "other"), [([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]), ((), [])], ids=["order of keys", "nothing"]
)
def test_equal_blocks_have_equal_digests(one: list[dict[str, int]], other: list[dict[str, int]]) -> None:
    assert digest(one) == digest(other)
