from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.engine.context import LeaseLost
from kizami.sandbox.faults import Fault
from kizami.sandbox.settings import SandboxSettings
from kizami.slack import Deliveries, DeliveryReport
from kizami.slack.errors import ApiError, NotSent, RateLimited
from kizami.slack.policy import SWEEP
from kizami.store.protocol import Delivery, LeaseFence
from tests.simulation.mirror_world import ALERTS, APP, STATUS, World, mirror_world

POST, HISTORY = "chat.postMessage", "conversations.history"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


def notices(world: World, **options: Any) -> Deliveries:
    return Deliveries(world.slack, channel=ALERTS, **options)


async def stored(world: World, item: str) -> Delivery:
    found = await world.store.deliveries.get(APP, ALERTS, item)
    assert found is not None
    return found


async def deliver(world: World, queue: Deliveries) -> DeliveryReport:
    """Deliver a minute later: what Slack asked to wait for has passed."""
    world.clock.move(60_000)
    return await queue.deliver()


async def test_each_item_is_posted_once_and_marked(world: World) -> None:
    queue = notices(world)
    assert await queue.add("a", "a is down")
    assert not await queue.add("a", "a is down, said again")
    assert await queue.add("b", "b is down")
    assert (await queue.deliver()).delivered == 2
    assert (await deliver(world, queue)).delivered == 0
    assert world.posted() == ["a is down", "b is down"]
    marked = await stored(world, "a")
    assert marked.ts == world.sandbox.log.posts(ALERTS)[0].ts
    assert marked.delivered_at is not None


async def test_foreign_text_pings_nobody(world: World) -> None:
    """B085: escaped once, at render."""
    queue = notices(world)
    await queue.add("a", "<!here> x<y & z>w")
    await queue.add("b", "<https://a.example|see>", markup=True)
    await queue.deliver()
    assert world.posted() == ["&lt;!here&gt; x&lt;y &amp; z&gt;w", "<https://a.example|see>"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault.answer_lost(),
        Fault.answer_lost(reset=True),
        Fault.never_accepted(),
        Fault.server_error(500, accepted=True),
        Fault.server_error(503),
        Fault.html_page(accepted=True),
        Fault.html_page(accepted=False),
        Fault.broken_json(accepted=True),
        Fault.empty_body(accepted=True),
        Fault.without_timestamp(),
        Fault.refused("internal_error"),
        Fault.refused("fatal_error"),
    ],
    ids=lambda fault: f"{fault.name}-{fault.acceptance}-{fault.ending}-{fault.status}-{len(str(fault.body))}",
)
async def test_a_lost_answer_leaves_exactly_one_message(world: World, fault: Fault) -> None:
    """B076, B077: never repeated blindly, never marked without a ts, settled by a look-up."""
    queue = notices(world)
    await queue.add("a", "a is down")
    world.sandbox.faults.fail_next(POST, fault)
    report = await queue.deliver()
    assert (report.in_doubt, report.delivered, world.calls(POST)) == (1, 0, 1)
    assert (await stored(world, "a")).delivered_at is None
    report = await deliver(world, queue)
    assert report.delivered + report.adopted == 1
    assert world.posted() == ["a is down"]
    assert (await stored(world, "a")).ts == world.sandbox.log.posts(ALERTS)[0].ts


async def test_a_crash_between_acceptance_and_marker_is_adopted(world: World) -> None:
    """B076."""
    queue = notices(world)
    await queue.add("a", "a is down")
    await world.die_at("answered", queue.deliver)
    report = await queue.deliver()
    assert (report.adopted, report.delivered) == (1, 0)
    assert world.posted() == ["a is down"]


async def test_a_crash_between_intent_and_call_is_posted_after_a_second_look(world: World) -> None:
    """B076: the reverse order."""
    queue = notices(world)
    await queue.add("a", "a is down")
    await world.die_at("before_send", queue.deliver)
    report = await queue.deliver()
    assert (report.adopted, report.delivered) == (0, 1)
    assert world.clock.slept == [5.0]
    assert world.calls(HISTORY) == 2
    assert world.posted() == ["a is down"]


async def test_a_lag_longer_than_a_try_may_last_is_waited_for_by_later_tries(world: World) -> None:
    """Each try once slept past its own deadline, so that the item was in doubt for ever."""
    timeout_s = world.enter_job().job.options.timeout_ms / 1000
    queue = notices(world, history_lag=timedelta(seconds=2.5 * timeout_s))
    await queue.add("a", "a is down")
    await queue.add("b", "b is down")
    await world.die_at("before_send", queue.deliver)
    report = await queue.deliver()
    assert (report.waiting, report.delivered) == (1, 1)
    note = (await stored(world, "a")).note
    assert note == "in doubt; waits because the look-up is incomplete: it may take 150 s more to appear"
    for _ in range(2):
        world.clock.move(round(timeout_s * 1000))
        report = await queue.deliver()
    assert report.delivered == 1
    assert sum(world.clock.slept) <= timeout_s / 2
    assert sorted(map(str, world.posted())) == ["a is down", "b is down"]


async def test_an_acceptance_that_shows_late_is_still_found(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.accepted_late(4.0))
    assert (await queue.deliver()).in_doubt == 1
    await world.sandbox.api.settle_late()
    assert (await queue.deliver()).adopted == 1
    assert world.posted() == ["a is down"]


async def test_an_incomplete_look_up_makes_the_item_wait_and_the_others_go_on(world: World) -> None:
    """B086."""
    queue = notices(world)
    await queue.add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await queue.deliver()
    await queue.add("b", "b is down")
    world.sandbox.faults.fail_next(HISTORY, Fault.rate_limited(60))
    report = await queue.deliver()
    assert (report.waiting, report.delivered) == (1, 1)
    assert "incomplete" in str((await stored(world, "a")).note)
    assert (await deliver(world, queue)).adopted == 1
    assert world.posted() == ["a is down", "b is down"]


async def test_one_call_a_minute_and_fifteen_messages_a_page_are_enough_in_the_end(tmp_path: Path) -> None:
    """B086: 40 messages came since; absence is concluded only when the last page was read."""
    async with mirror_world(tmp_path, SandboxSettings(history_limited=True)) as world:
        queue = notices(world)
        await queue.add("a", "a is down")
        world.sandbox.faults.fail_next(POST, Fault.never_accepted())
        assert (await queue.deliver()).in_doubt == 1
        other = notices(world, lookup=False, batch=40)
        for number in range(40):
            world.clock.move(1_100)
            await world.slack.call(POST, {"channel": ALERTS, "text": f"chatter {number}"}, SWEEP)
        waits = 0
        while (await deliver(world, queue)).waiting:
            waits += 1
            assert waits < 10
        assert waits == 2
        assert world.posted().count("a is down") == 1
        assert (await stored(world, "a")).delivered_at is not None
        assert other.channel == ALERTS


async def test_many_doubts_share_one_reading(world: World) -> None:
    """B086: look-ups have a budget of their own and don't use up what posts need."""
    queue = notices(world, batch=50)
    for number in range(30):
        await queue.add(f"a{number}", f"a{number}")
        world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    while (await queue.deliver()).in_doubt:
        pass
    assert (await deliver(world, queue)).adopted + len(world.posted()) >= 30
    assert len(set(world.posted())) == len(world.posted()) == 30
    assert world.calls(HISTORY) <= 25


async def test_an_unreadable_history_costs_one_visible_duplicate_and_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """B086: the documented trade."""
    queue = notices(world)
    await queue.add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await queue.deliver()
    world.sandbox.faults.fail_next(HISTORY, Fault.refused("missing_scope"))
    with caplog.at_level(logging.WARNING):
        assert (await deliver(world, queue)).delivered == 1
    assert world.posted() == ["a is down", "a is down"]
    assert "missing_scope" in str((await stored(world, "a")).note)
    assert "a duplicate is possible" in caplog.text


@pytest.mark.parametrize(("lookup", "copies"), [(True, 1), (False, 2)])
async def test_without_look_ups_a_lost_answer_is_posted_again(world: World, lookup: bool, copies: int) -> None:
    queue = notices(world, lookup=lookup)
    await queue.add("a", "a is down")
    world.sandbox.faults.fail_next(POST, Fault.answer_lost())
    await queue.deliver()
    await deliver(world, queue)
    assert len(world.posted()) == copies


async def test_a_short_wait_is_slept_and_a_long_one_closes_the_gate_without_sleeping(world: World) -> None:
    """B074: nothing goes through the gate before its time; other channels go on; the gate is stored."""
    queue, other = notices(world), Deliveries(world.slack, channel=STATUS)
    await queue.add("a", "a")
    await queue.add("b", "b")
    await other.add("c", "c")
    world.sandbox.faults.fail_next(POST, Fault.rate_limited(2), Fault.rate_limited(7))
    report = await queue.deliver()
    assert world.clock.slept == [2.0]
    assert isinstance(report.stopped, RateLimited)
    assert (report.waiting, report.delivered, world.calls(POST)) == (1, 0, 2)
    report = await queue.deliver()
    assert isinstance(report.stopped, RateLimited)
    assert report.stopped.gate
    assert world.calls(POST) == 2
    assert (await other.deliver()).delivered == 1
    world.clock.move(7_000)
    assert (await queue.deliver()).delivered == 2
    assert world.posted() == ["a", "b"]


@pytest.mark.parametrize(
    ("fault", "wait_ms"),
    [
        (Fault.rate_limited(header=None), 30_000),
        (Fault.rate_limited(header="soon"), 30_000),
        (Fault.rate_limited(header="7.5"), 7_500),
        (Fault.rate_limited(86_400), 86_400_000),
        (Fault.rate_limited(status=200, header=None), 30_000),
        (Fault.rate_limited(status=200, header=None, error="rate_limited"), 30_000),
    ],
    ids=["missing", "garbage", "fraction", "a-day", "in-a-200", "in-a-200-other-code"],
)
async def test_every_form_of_a_429_closes_the_gate_for_its_time(world: World, fault: Fault, wait_ms: int) -> None:
    """B074, B077."""
    queue = notices(world)
    await queue.add("a", "a")
    world.sandbox.faults.fail_next(POST, fault)
    await queue.deliver()
    assert world.clock.slept == []
    assert [gate.remaining_ms for gate in await world.store.gates.closed(APP)] == [wait_ms]
    assert (await stored(world, "a")).in_doubt_since is None


async def test_a_lease_lost_between_two_items_stops_before_the_second(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    await queue.add("b", "b")
    world.enter_job(lease=await world.take_lease("run-1"))

    async def take_over(phase: str, item: str) -> None:
        if (phase, item) == ("between_items", "b"):
            world.clock.move(600_001)
            await world.take_lease("run-2")

    world.slack.on_phase = take_over
    with pytest.raises(LeaseLost):
        await queue.deliver()
    assert world.posted() == ["a"]
    found = await stored(world, "b")
    assert (found.attempts, found.delivered_at) == (0, None)


async def test_the_lease_is_asked_again_before_a_call_is_repeated(world: World) -> None:
    """The run may be taken over while it waits out a 429."""
    queue = notices(world)
    await queue.add("a", "a")
    world.enter_job(lease=await world.take_lease("run-1"))
    world.sandbox.faults.fail_next(POST, Fault.rate_limited(2))

    async def stall(phase: str, _item: str) -> None:
        if phase == "before_send":
            await world.store.leases.release(APP, LeaseFence("mirror", "run-1"))

    world.slack.on_phase = stall
    with pytest.raises(LeaseLost):
        await queue.deliver()
    assert world.posted() == []
    assert (await stored(world, "a")).in_doubt_since is None


async def test_a_broken_token_makes_doubts_wait_and_stops_at_the_first_post(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    world.sandbox.faults.fail_next(POST, Fault.answer_lost(), Fault.refused("invalid_auth"))
    await queue.deliver()
    await queue.add("b", "b")
    world.sandbox.faults.fail_next(HISTORY, Fault.refused("invalid_auth"))
    report = await deliver(world, queue)
    assert (report.waiting, report.delivered) == (1, 0)
    assert isinstance(report.stopped, ApiError)
    assert (await deliver(world, queue)).adopted == 1
    assert world.posted() == ["a", "b"]


async def test_a_clock_set_back_does_not_make_a_message_look_absent(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    world.sandbox.faults.fail_next(POST, Fault.never_accepted(), Fault.answer_lost())
    await queue.deliver()
    world.clock.move(60_000)
    await queue.deliver()
    world.clock.now -= 120_000
    assert (await queue.deliver()).adopted == 1
    assert world.posted() == ["a"]


async def test_a_marker_that_lands_nowhere_is_a_possible_duplicate(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    queue = notices(world)
    await queue.add("a", "a")

    async def expire(phase: str, item: str) -> None:
        if phase == "answered":
            world.clock.move(300_001)
            assert await world.store.deliveries.claim(APP, ALERTS, item, "other", 300_000, "w9", None)

    world.slack.on_phase = expire
    report = await queue.deliver()
    assert (report.possible_duplicates, report.delivered) == (1, 0)
    assert (await stored(world, "a")).possible_duplicates == 1
    assert "possible duplicate" in caplog.text


async def test_content_that_slack_refuses_is_set_aside_and_the_rest_goes_on(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    await queue.add("b", "b")
    world.sandbox.faults.fail_next(POST, Fault.refused("msg_too_long"))
    report = await queue.deliver()
    assert (report.refused, report.delivered) == (1, 1)
    found = await stored(world, "a")
    assert found.set_aside_at is not None
    assert "msg_too_long" in str(found.note)
    assert found.in_doubt_since is None


async def test_refused_blocks_do_not_cost_the_message(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a", blocks=[{"type": "divider"}])
    world.sandbox.faults.fail_next(POST, Fault.refused("invalid_blocks"))
    report = await queue.deliver()
    assert (report.refused, report.delivered) == (0, 1)
    assert world.posted() == ["a"]


@pytest.mark.parametrize("error", ["is_archived", "not_in_channel", "invalid_auth", "service_unavailable"])
async def test_what_would_refuse_everything_stops_the_deliver(world: World, error: str) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    await queue.add("b", "b")
    world.sandbox.faults.fail_next(POST, Fault.refused(error))
    report = await queue.deliver()
    assert isinstance(report.stopped, ApiError)
    assert report.stopped.error == error
    assert world.calls(POST) == 1
    assert (await deliver(world, queue)).delivered == 2


async def test_slack_out_of_reach_leaves_everything_owed_and_nothing_in_doubt(world: World) -> None:
    queue = notices(world)
    await queue.add("a", "a")
    world.slack.api_url = "http://127.0.0.1:9/api/"
    report = await queue.deliver()
    assert isinstance(report.stopped, NotSent)
    assert (await stored(world, "a")).in_doubt_since is None


async def test_a_warning_is_delivered_and_flagged(world: World) -> None:
    """B083."""
    queue = notices(world)
    await queue.add("a", "a")
    world.sandbox.faults.fail_next(POST, Fault.with_warning("message_truncated"))
    assert (await queue.deliver()).delivered == 1
    assert "message_truncated" in str((await stored(world, "a")).note)


async def test_the_batch_is_a_limit_and_the_oldest_due_goes_first(world: World) -> None:
    queue = notices(world, batch=2)
    today = date(2026, 5, 28)
    for number in range(4):
        await queue.add(f"a{number}", f"a{number}", due=today - timedelta(days=number))
    assert (await queue.deliver()).delivered == 2
    assert world.posted() == ["a3", "a2"]
    assert (await queue.deliver()).delivered == 2


async def test_what_is_due_for_too_long_is_set_aside_visibly(world: World) -> None:
    queue = notices(world, max_age=timedelta(days=7))
    today = date(2026, 5, 28)
    await queue.add("edge", "edge", due=today - timedelta(days=7))
    await queue.add("old", "old", due=today - timedelta(days=8))
    await queue.add("later", "later", due=today + timedelta(days=1))
    report = await queue.deliver()
    assert (report.set_aside, report.delivered) == (1, 1)
    assert "7 days" in str((await stored(world, "old")).note)


async def test_wrong_names_fail_with_a_sentence(world: World) -> None:
    with pytest.raises(DefinitionError, match="not a channel id"):
        Deliveries(world.slack, channel="#alerts")
    with pytest.raises(InvalidInputError, match="can't name a delivery"):
        await notices(world).add("", "a")
