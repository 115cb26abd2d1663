from __future__ import annotations

from email.utils import parsedate_to_datetime

import aiohttp
import pytest

from kizami.core.errors import ConfigurationError
from kizami.runtime import SystemClock
from kizami.sandbox.server import Sandbox
from kizami.slack import Slack
from kizami.slack.identity import Identity
from kizami.slack.slack_time import SlackTime, ts_of
from tests.conformance.mirror_store import HandClock

DATE, DATE_MS = "Thu, 28 May 2026 20:26:40 GMT", 1_780_000_000_000


def test_slack_s_time_goes_on_with_the_boot_clock_whatever_is_done_to_the_wall_clock() -> None:
    clock, time = HandClock(now=5), SlackTime()
    assert time.now(clock) is None
    time.learn(DATE, None, clock)
    clock.boot += 1_500
    clock.now -= 10**12
    assert time.now(clock) == DATE_MS + 1_500
    time.learn("Thu, 28 May 2026 20:26:40 GMT", None, clock)
    assert time.now(clock) == DATE_MS


def test_a_reading_counts_only_with_the_clock_it_was_taken_with() -> None:
    time = SlackTime()
    time.learn(DATE, None, HandClock())
    assert time.now(HandClock()) is None


@pytest.mark.parametrize("date", [None, "", "soon", "2026-05-28T20:26:40Z", "Thu, 28 May 2026 20:26:40", "Thu, 99 May"])
def test_without_a_usable_date_a_ts_tells_the_time(date: str | None) -> None:
    clock, time = HandClock(), SlackTime()
    time.learn(date, "1780000000.123456", clock)
    assert time.now(clock) == DATE_MS + 123


@pytest.mark.parametrize("ts", [None, 1780000000.123456, "1780000000", "1780000000.1234", "soon.000000", "٣.000000"])
def test_what_tells_no_time_leaves_it_unknown(ts: object) -> None:
    clock, time = HandClock(), SlackTime()
    time.learn(None, ts, clock)
    assert time.now(clock) is None


def test_an_instant_is_written_as_a_ts() -> None:
    assert (ts_of(DATE_MS + 7), ts_of(0)) == ("1780000000.007000", "0.000000")


@pytest.mark.parametrize(
    ("message", "ours"),
    [
        ({"bot_id": "B1", "user": "U9"}, True),
        ({"app_id": "A1"}, True),
        ({"user": "U1"}, True),
        ({"bot_id": "B2", "app_id": "A2", "user": "U2"}, False),
        ({"bot_id": "", "app_id": "", "user": ""}, False),
        ({}, False),
    ],
)
def test_a_message_is_ours_by_any_id_that_slack_wrote_into_it(message: dict[str, str], ours: bool) -> None:
    assert Identity("B1", "A1", "U1").wrote(message) is ours


def test_without_an_identity_nothing_is_ours() -> None:
    assert not Identity.read({"bot_id": None, "user_id": 7}).wrote({"bot_id": "", "user": ""})


async def test_every_answer_of_the_sandbox_shows_its_wall_clock() -> None:
    sandbox = Sandbox()
    async with sandbox.serving() as url, aiohttp.ClientSession() as session:
        for method in ("auth.test", "no.such"):
            async with session.post(f"{url}/api/{method}", headers={"Authorization": "Bearer xoxb-sandbox"}) as answer:
                (shown,) = answer.headers.getall("Date")
                told_ms = parsedate_to_datetime(shown).timestamp() * 1000
                assert abs(told_ms - SystemClock().now_ms()) < 60_000


@pytest.mark.parametrize("seconds", [0, 61, -1])
def test_a_call_takes_no_longer_than_its_claim_allows(seconds: int) -> None:
    with pytest.raises(ConfigurationError, match="timeout_s"):
        Slack("xoxb-1", timeout_s=seconds)
