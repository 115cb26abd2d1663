"""What is in doubt is looked for in Slack's time: no wrong clock of ours makes a message look absent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.sandbox.faults import Fault
from kizami.sandbox.hooks import Call, Phase
from kizami.sandbox.settings import BotSeed, SandboxSettings
from kizami.slack import BoardOutcome, Deliveries, DeliveryReport, Slack, StatusBoard
from kizami.slack.history import Finding, History
from kizami.slack.policy import SWEEP
from kizami.store.protocol import Intent
from tests.simulation.mirror_world import ALERTS, APP, STATUS, UNLIMITED, World, mirror_world

POST, UPDATE, HISTORY, AUTH = "chat.postMessage", "chat.update", "conversations.history", "auth.test"
HOUR_MS = 3_600_000
HOURS = [-9 * HOUR_MS, -HOUR_MS, HOUR_MS, 9 * HOUR_MS]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


def notices(world: World) -> Deliveries:
    return Deliveries(world.slack, channel=ALERTS)


def restarted(world: World) -> Deliveries:
    """Return the queue of a process that has never talked to Slack."""
    world.slack = Slack(api_url=world.sandbox.api_url, timeout_s=5)
    return notices(world)


@pytest.mark.parametrize("step_ms", [0, *HOURS])
@pytest.mark.parametrize("slack_ahead_ms", [0, *HOURS])
@pytest.mark.parametrize("fault", [Fault.answer_lost(), Fault.never_accepted()], ids=["accepted", "not-accepted"])
async def test_clocks_that_are_hours_off_or_stepped_leave_exactly_one_message(
    tmp_path: Path, slack_ahead_ms: int, step_ms: int, fault: Fault
) -> None:
    """B065, B086: ours is behind or ahead of Slack's, and is stepped between the attempt and the look-up."""
    async with mirror_world(tmp_path, slack_ahead_ms=slack_ahead_ms) as world:
        await notices(world).add("a", "a is down")
        world.sandbox.faults.fail_next(POST, fault)
        assert (await notices(world).deliver()).in_doubt == 1
        world.clock.now += step_ms
        world.clock.move(60_000)
        report = await restarted(world).deliver()
        assert report.delivered + report.adopted == 1
        assert world.posted() == ["a is down"]


@pytest.mark.parametrize("slack_ahead_ms", HOURS)
async def test_the_window_of_a_look_up_begins_minutes_before_the_attempt_not_hours(
    tmp_path: Path, slack_ahead_ms: int
) -> None:
    """Older messages are not read, however wrong the clock: that is what the window is for."""
    async with mirror_world(tmp_path, SandboxSettings(rate_limited=False, history_page_max=1)) as world:
        world.clock.now -= slack_ahead_ms
        for number in range(20):
            world.sandbox.say(ALERTS, f"chatter {number}")
        world.clock.move(HOUR_MS)
        await notices(world).add("a", "a is down")
        world.sandbox.faults.fail_next(POST, Fault.answer_lost())
        await notices(world).deliver()
        world.clock.move(60_000)
        assert (await restarted(world).deliver()).adopted == 1
        assert world.calls(HISTORY) == 1


@pytest.mark.parametrize("step_ms", HOURS)
async def test_without_a_known_time_the_whole_channel_is_read(world: World, step_ms: int) -> None:
    """An attempt of which Slack's time isn't known is never taken for absent because of a window."""
    delivery = f"{APP}/{ALERTS}/a"
    mark = {"event_type": "kizami_delivery", "event_payload": {"delivery": delivery, "attempt": 1}}
    await world.slack.call(POST, {"channel": ALERTS, "text": "a is down", "metadata": mark}, SWEEP)
    world.clock.move(9 * HOUR_MS)
    intents = [Intent(1, ALERTS, world.clock.now + step_ms)]
    looked = await History(world.slack, ALERTS).find(world.enter_job(), delivery, intents)
    assert (looked.finding, looked.copies) == (Finding.FOUND, 1)


async def test_a_reading_says_nothing_of_attempts_from_before_its_window(world: World) -> None:
    """B086: one reading serves many doubts, but not those that it doesn't reach back to."""
    old_at = world.slack_clock.now_ms()
    mark = {"event_type": "kizami_delivery", "event_payload": {"delivery": "shop/old", "attempt": 1}}
    await world.slack.call(POST, {"channel": ALERTS, "text": "old", "metadata": mark}, SWEEP)
    world.clock.move(HOUR_MS)
    recent_at = world.slack_clock.now_ms() - 60_000
    history, job = History(world.slack, ALERTS), world.enter_job()
    assert (await history.find(job, "shop/new", [Intent(1, ALERTS, 0, recent_at)])).finding is Finding.ABSENT
    assert (await history.find(job, "shop/old", [Intent(1, ALERTS, 0, old_at)])).finding is Finding.FOUND


async def test_an_attempt_of_unknown_time_is_waited_for_before_it_is_absent(world: World) -> None:
    looked = await History(world.slack, ALERTS).find(world.enter_job(), "shop/x", [Intent(1, ALERTS, 0)])
    assert looked.finding is Finding.ABSENT
    assert world.clock.slept == [5.0]


async def test_a_step_forward_does_not_count_as_time_that_slack_had(world: World) -> None:
    """A message may take a moment to appear, and a clock that is set forward is not that moment."""
    await notices(world).add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    await notices(world).deliver()
    world.clock.now += HOUR_MS
    assert (await notices(world).deliver()).delivered == 1
    assert world.clock.slept == [5.0]


@pytest.mark.parametrize(("later_ms", "slept"), [(10_000, [5.0]), (12_000, [])], ids=["call-counts", "long-ago"])
async def test_a_call_may_have_been_accepted_at_its_very_end(world: World, later_ms: int, slept: list[float]) -> None:
    """What a call of 5 s left behind has another 5 s to appear."""
    await notices(world).add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.never_accepted())
    await notices(world).deliver()
    world.clock.move(later_ms)
    assert (await notices(world).deliver()).delivered == 1
    assert world.clock.slept == slept


@pytest.mark.parametrize(
    "answer",
    [{"ok": True}, {"ok": True, "messages": None}, {"ok": True, "messages": [], "has_more": True}],
    ids=["no-messages", "null", "more-without-cursor"],
)
async def test_a_history_that_does_not_say_all_makes_the_item_wait(world: World, answer: dict[str, object]) -> None:
    """B086: absence is concluded from what was read, never from what an answer left out."""
    await notices(world).add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await notices(world).deliver()
    world.clock.move(60_000)
    world.sandbox.faults.fail_next(HISTORY, Fault("told_in_part", body=answer))
    assert (await notices(world).deliver()).waiting == 1
    assert (await notices(world).deliver()).adopted == 1
    assert world.posted() == ["a is down"]


async def test_two_delivers_that_look_at_the_same_time_conclude_nothing_from_half_a_reading(tmp_path: Path) -> None:
    """A second deliver begins while the first has read one page of two: the message is on the other."""
    async with mirror_world(tmp_path, SandboxSettings(rate_limited=False, history_page_max=1)) as world:
        queue = notices(world)
        world.sandbox.faults.fail_next(POST, Fault.answer_lost(), Fault.answer_lost())
        for item in ("a", "b"):
            await queue.add(item, item)
        assert (await queue.deliver()).in_doubt == 2
        world.clock.move(60_000)
        world.sandbox.say(ALERTS, "chatter")
        others: list[asyncio.Task[DeliveryReport]] = []

        async def deliver_beside() -> DeliveryReport:
            world.enter_job("w2")
            return await queue.deliver()

        async def begin_another(_call: Call) -> None:
            if not others:
                others.append(asyncio.create_task(deliver_beside()))

        world.sandbox.hooks.add(Phase.RECEIVED, begin_another, method=HISTORY)
        reports = [await queue.deliver(), *await asyncio.gather(*others)]
        assert sum(report.adopted for report in reports) == 2
        assert world.posted() == ["a", "b"]


async def test_a_copy_of_our_mark_by_somebody_else_is_not_adopted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever reads the channel can copy a message's metadata; the ids of its author only Slack writes."""
    settings = SandboxSettings(rate_limited=False, bots=(BotSeed(), BotSeed("xoxb-other", "other")))
    async with mirror_world(tmp_path, settings) as world:
        await notices(world).add("a", "a is down")
        world.sandbox.faults.fail_next(POST, Fault.never_accepted())
        await notices(world).deliver()
        key = f"{await world.store.identity.database_id()}/{APP}/{ALERTS}/a"
        mark = {"event_type": "kizami_delivery", "event_payload": {"delivery": key, "attempt": 1}}
        stranger = Slack("xoxb-other", world.sandbox.api_url)
        await stranger.call(POST, {"channel": ALERTS, "text": "all is well", "metadata": mark}, SWEEP)
        world.clock.move(60_000)
        with caplog.at_level(logging.WARNING):
            assert (await restarted(world).deliver()).delivered == 1
        assert world.posted() == ["all is well", "a is down"]
        assert "shop/C0ALERTS/a, but isn't ours" in caplog.text


async def test_who_we_are_is_asked_once_and_what_fails_before_a_post_leaves_nothing_in_doubt(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    await queue.add("b", "b")
    world.sandbox.faults.fail_next(AUTH, Fault.answer_lost())
    report = await queue.deliver()
    assert (report.waiting, report.in_doubt, world.calls(POST)) == (1, 0, 0)
    assert report.stopped is not None
    assert (await queue.deliver()).delivered == 2
    assert world.calls(AUTH) == 2


async def test_a_board_asks_too_and_is_not_in_doubt_before_its_post(world: World) -> None:
    board = StatusBoard(world.slack, "services", channel=STATUS)
    world.sandbox.faults.fail_next(AUTH, Fault.answer_lost())
    assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.WAITING
    (row,) = await world.store.boards.list(APP)
    assert row.in_doubt_since is None
    assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.POSTED


@pytest.mark.parametrize("slack_ahead_ms", HOURS)
async def test_a_board_s_lost_first_post_is_found_by_slack_s_clock(tmp_path: Path, slack_ahead_ms: int) -> None:
    async with mirror_world(tmp_path, UNLIMITED, slack_ahead_ms=slack_ahead_ms) as world:
        board = StatusBoard(world.slack, "services", channel=STATUS)
        world.sandbox.faults.fail_next(POST, Fault.answer_lost())
        assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.IN_DOUBT
        world.clock.move(60_000)
        assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.ADOPTED
        assert (len(world.posted(STATUS)), world.calls(UPDATE)) == (1, 1)
