from __future__ import annotations

import asyncio
from collections import Counter

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from kizami.core.errors import InvalidInputError
from kizami.sandbox.faults import Fault, FaultMix, Faults
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from tests.unit.sandbox_slack import ALERTS, STATUS, TOKEN, HandClock

pytest_plugins = ["tests.unit.sandbox_fixtures"]

POST = "chat.postMessage"


async def post(slack: AsyncWebClient, channel: str = STATUS) -> None:
    await slack.chat_postMessage(channel=channel, text="x", metadata={"event_type": "d", "event_payload": {"id": "1"}})


@pytest.mark.parametrize("reset", [False, True])
async def test_a_lost_answer_is_an_accepted_post_and_a_broken_connection(
    sandbox: Sandbox, slack: AsyncWebClient, *, reset: bool
) -> None:
    sandbox.faults.fail_next(POST, Fault.answer_lost(reset=reset))
    broken = aiohttp.ClientOSError if reset else aiohttp.ServerDisconnectedError
    with pytest.raises(broken):
        await post(slack)
    [entry] = sandbox.log.posts(STATUS)
    assert (entry.fault, entry.answered, entry.late) == ("answer_lost", False, False)
    assert len((await slack.conversations_history(channel=STATUS))["messages"]) == 1


async def test_the_default_client_repeats_a_lost_post_by_itself(sandbox: Sandbox) -> None:
    """Why retry handlers must be off: one call, two messages."""
    careless = AsyncWebClient(TOKEN, base_url=sandbox.api_url)
    sandbox.faults.fail_next(POST, Fault.answer_lost())
    await post(careless)
    assert len(sandbox.log.duplicates("id")["1"]) == 2


@pytest.mark.parametrize("reset", [False, True])
async def test_a_call_that_was_never_accepted_leaves_nothing(
    sandbox: Sandbox, slack: AsyncWebClient, *, reset: bool
) -> None:
    sandbox.faults.fail_next(POST, Fault.never_accepted(reset=reset))
    with pytest.raises(aiohttp.ClientOSError if reset else aiohttp.ServerDisconnectedError):
        await post(slack)
    assert sandbox.log.posts() == []
    assert sandbox.log.calls(POST)[0].outcome == "not_accepted"


async def test_late_acceptance_is_invisible_until_it_comes(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    """A look-up in between finds nothing, and the post comes all the same."""
    sandbox.faults.fail_next(POST, Fault.accepted_late(30))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await post(slack)
    await sandbox_clock.until_waited_on()
    sandbox_clock.move(29)
    assert (await slack.conversations_history(channel=STATUS))["messages"] == []
    sandbox_clock.move(1)
    await sandbox.settle_late()
    [message] = (await slack.conversations_history(channel=STATUS))["messages"]
    assert message["ts"] == "1796000030.123000", "the ts is of the acceptance, not of the call"
    came, accepted = sandbox.log.calls(POST)
    assert (accepted.call, accepted.at - came.at) == (came.seq, 30_000)
    assert [(entry.outcome, entry.late, entry.answered) for entry in sandbox.log.calls(POST)] == [
        ("not_accepted", False, False),
        ("ok", True, False),
    ]


@pytest.mark.parametrize("sandbox_settings", [SandboxSettings(time_scale=60, rate_limited=False)])
async def test_late_acceptance_comes_sooner_on_a_time_scale(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    sandbox.faults.fail_next(POST, Fault.accepted_late(30))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await post(slack)
    await sandbox_clock.until_waited_on()
    sandbox_clock.move(0.5)
    await sandbox.settle_late()
    assert len(sandbox.log.posts()) == 1


@pytest.mark.parametrize("accepted", [False, True])
async def test_a_hanging_call_ends_in_a_closed_connection(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient, *, accepted: bool
) -> None:
    sandbox.faults.fail_next(POST, Fault.hang(60, accepted=accepted))
    call = asyncio.create_task(post(slack))
    await sandbox_clock.until_waited_on()
    sandbox_clock.move(59)
    assert not call.done()
    sandbox_clock.move(1)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await call
    assert len(sandbox.log.posts()) == accepted


async def test_a_slow_answer_comes_whole(sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    sandbox.faults.fail_next(POST, Fault.slow(5))
    call = asyncio.create_task(post(slack))
    await sandbox_clock.until_waited_on()
    assert len(sandbox.log.posts()) == 1
    assert sandbox.log.posts()[0].answered is False
    sandbox_clock.move(5)
    await call
    assert sandbox.log.posts()[0].answered is True


async def test_a_client_that_gives_up_is_not_counted_as_answered(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient
) -> None:
    gone = asyncio.Event()
    sandbox.faults.fail_next(POST, Fault.slow(5))
    call = asyncio.create_task(post(slack))
    await sandbox_clock.until_waited_on()
    call.add_done_callback(lambda _: gone.set())
    call.cancel()
    await gone.wait()
    await slack.auth_test()  # the sandbox has seen the closed socket before this later call
    sandbox_clock.move(5)
    await slack.auth_test()
    assert sandbox.log.posts()[0].answered is False


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.rate_limited(7), "7"),
        (Fault.rate_limited(0.2), "1"),
        (Fault.rate_limited(header=None), None),
        (Fault.rate_limited(header="0"), "0"),
        (Fault.rate_limited(header="7.5"), "7.5"),
        (Fault.rate_limited(header="soon"), "soon"),
        (Fault.rate_limited(header="86400"), "86400"),
    ],
)
async def test_a_429_says_what_it_is_told_to_say(
    sandbox: Sandbox, slack: AsyncWebClient, fault: Fault, told: str | None
) -> None:
    """B074: header missing, zero, fractional, garbage, a day."""
    sandbox.faults.fail_next(POST, fault)
    with pytest.raises(SlackApiError) as refused:
        await post(slack)
    answer = refused.value.response
    assert (answer.status_code, answer.headers.get("Retry-After")) == (429, told)
    assert answer["error"] == "ratelimited"
    assert sandbox.log.posts() == []
    await post(slack)


async def test_a_rate_limit_can_hide_in_a_200(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B077: status 200, ok false, ratelimited, no header."""
    sandbox.faults.fail_next(POST, Fault.rate_limited(status=200, header=None, error="rate_limited"))
    with pytest.raises(SlackApiError) as refused:
        await post(slack)
    answer = refused.value.response
    assert (answer.status_code, answer["error"], answer.headers.get("Retry-After")) == (200, "rate_limited", None)


async def test_a_429_can_be_meant_seriously(sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient) -> None:
    """B074: no request passes the gate before its time, and the other channel is open."""
    sandbox.faults.fail_next(POST, Fault.rate_limited(7, closes_gate=True))
    with pytest.raises(SlackApiError):
        await post(slack)
    sandbox_clock.move(6)
    with pytest.raises(SlackApiError) as early:
        await post(slack)
    assert early.value.response.headers["Retry-After"] == "1"
    await post(slack, ALERTS)
    sandbox_clock.move(1)
    await post(slack)


@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("accepted", [False, True])
async def test_a_server_error_tells_nothing_about_acceptance(
    sandbox: Sandbox, slack: AsyncWebClient, status: int, *, accepted: bool
) -> None:
    sandbox.faults.fail_next(POST, Fault.server_error(status, accepted=accepted))
    with pytest.raises(SlackApiError) as failed:
        await post(slack)
    answer = failed.value.response
    assert (answer.status_code, answer.get("error")) == (status, None)
    assert len(sandbox.log.posts()) == accepted


async def test_a_server_error_can_be_json(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    sandbox.faults.fail_next(POST, Fault.server_error(500, html=False))
    with pytest.raises(SlackApiError) as failed:
        await post(slack)
    assert failed.value.response["error"] == "internal_error"


@pytest.mark.parametrize(
    ("fault", "body"), [(Fault.html_page(), {}), (Fault.empty_body(), None)], ids=["html_page", "empty_body"]
)
async def test_a_success_that_is_no_answer(sandbox: Sandbox, slack: AsyncWebClient, fault: Fault, body: object) -> None:
    """B077: an HTML page or nothing at all with status 200."""
    sandbox.faults.fail_next(POST, fault)
    with pytest.raises(SlackApiError) as failed:
        await post(slack)
    assert (failed.value.response.status_code, failed.value.response.data) == (200, body)
    assert len(sandbox.log.posts()) == 1


async def test_broken_json_leaves_the_client_without_an_answer_to_ask(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    sandbox.faults.fail_next(POST, Fault.broken_json())
    with pytest.raises(SlackApiError) as failed:
        await post(slack)
    assert isinstance(failed.value.response, aiohttp.ClientResponse)
    assert len(sandbox.log.posts()) == 1


async def test_an_ok_can_come_without_a_ts(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B077: ok true and nothing to find the message by."""
    sandbox.faults.fail_next(POST, Fault.without_timestamp())
    answer = await slack.chat_postMessage(channel=STATUS, text="x")
    assert answer.data == {"ok": True, "channel": STATUS}


async def test_an_ok_can_come_with_a_warning(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    """B077, B083 (c)."""
    sandbox.faults.fail_next(POST, Fault.with_warning("message_truncated"))
    answer = await slack.chat_postMessage(channel=STATUS, text="x")
    assert (answer["warning"], answer["ts"]) == ("message_truncated", sandbox.log.posts()[0].ts)


@pytest.mark.parametrize(
    "error",
    [
        "message_not_found",
        "cant_update_message",
        "edit_window_closed",
        "is_archived",
        "channel_not_found",
        "msg_too_long",
        "invalid_blocks",
    ],
)
async def test_an_edit_can_be_refused_for_any_reason(sandbox: Sandbox, slack: AsyncWebClient, error: str) -> None:
    """B079: each reason at will, and the message is untouched."""
    ts = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    sandbox.faults.fail_next("chat.update", Fault.refused(error))
    with pytest.raises(SlackApiError) as refused:
        await slack.chat_update(channel=STATUS, ts=ts, text="2")
    assert refused.value.response["error"] == error
    assert sandbox.workspace.messages(STATUS)[0].edits == 0


async def test_a_lost_answer_to_a_refused_call_is_still_a_refusal(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    sandbox.faults.fail_next(POST, Fault.answer_lost())
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await slack.chat_postMessage(channel="C0NONE", text="x")
    assert [(entry.outcome, entry.effect) for entry in sandbox.log.calls(POST)] == [("channel_not_found", None)]


async def test_queued_faults_come_one_a_call_and_in_order(sandbox: Sandbox, slack: AsyncWebClient) -> None:
    sandbox.faults.fail_next(POST, Fault.refused("first"), Fault.refused("second"))
    sandbox.faults.fail_next(POST, Fault.refused("elsewhere"), channel=ALERTS)
    seen = []
    for channel in (STATUS, ALERTS, STATUS):
        with pytest.raises(SlackApiError) as refused:
            await post(slack, channel)
        seen.append(refused.value.response["error"])
    assert seen == ["first", "elsewhere", "second"]
    await post(slack)


def test_a_mix_gives_the_same_call_the_same_fate() -> None:
    mix = FaultMix(7, [(0.2, Fault.answer_lost()), (0.1, Fault.never_accepted())])
    fates = [mix.draw(POST, number) for number in range(1, 1_001)]
    assert fates == [mix.draw(POST, number) for number in range(1, 1_001)]
    counted = Counter(fate.name if fate else "fine" for fate in fates)
    assert 160 < counted["answer_lost"] < 240
    assert 70 < counted["never_accepted"] < 130
    assert [FaultMix(8, mix.chances).draw(POST, number) for number in range(1, 1_001)] != fates


def test_a_mix_leaves_other_methods_alone() -> None:
    mix = FaultMix(7, [(1.0, Fault.answer_lost())])
    assert mix.draw("conversations.history", 1) is None
    assert mix.draw("chat.update", 1) == Fault.answer_lost()
    assert FaultMix(7, [(0.0, Fault.answer_lost())]).draw(POST, 1) is None


@pytest.mark.parametrize("chances", [[(0.6, Fault.slow()), (0.5, Fault.slow())], [(-0.1, Fault.slow())]])
def test_chances_are_shares_of_one_whole(chances: list[tuple[float, Fault]]) -> None:
    with pytest.raises(InvalidInputError):
        FaultMix(1, chances)


def test_a_queued_fault_goes_before_the_mix() -> None:
    faults = Faults(mix=FaultMix(7, [(1.0, Fault.slow())]))
    faults.fail_next(POST, Fault.answer_lost())
    assert [faults.take(POST, STATUS), faults.take(POST, STATUS)] == [Fault.answer_lost(), Fault.slow()]
    faults.clear()
    assert faults.take(POST, STATUS) is None
