"""What the mirror does about refusals: only what is known to be the item's own fault sets the item aside."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from kizami.core.errors import InvalidInputError
from kizami.sandbox.faults import Fault
from kizami.slack import BoardOutcome, Deliveries, StatusBoard
from kizami.slack.error_codes import ERROR_CLASSES, ErrorClass, error_class
from kizami.slack.errors import ApiError
from kizami.store.protocol import NewDelivery
from tests.simulation.mirror_world import ALERTS, APP, STATUS, World, mirror_world

POST, UPDATE = "chat.postMessage", "chat.update"
UNKNOWN = Fault.refused("a_code_of_next_year")

DOCUMENTED = [
    "as_user_not_supported",
    "channel_not_found",
    "duplicate_channel_not_found",
    "duplicate_message_not_found",
    "ekm_access_denied",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "is_archived",
    "markdown_text_conflict",
    "message_limit_exceeded",
    "messages_tab_disabled",
    "metadata_must_be_sent_from_app",
    "metadata_too_large",
    "msg_blocks_too_long",
    "no_text",
    "not_in_channel",
    "rate_limited",
    "restricted_action",
    "restricted_action_non_threadable_channel",
    "restricted_action_read_only_channel",
    "restricted_action_thread_locked",
    "restricted_action_thread_only_channel",
    "slack_connect_canvas_sharing_blocked",
    "slack_connect_file_link_sharing_blocked",
    "slack_connect_lists_sharing_blocked",
    "team_not_found",
    "too_many_attachments",
    "too_many_contact_cards",
    "cannot_reply_to_message",
    "missing_file_data",
    "attachment_payload_limit_exceeded",
    "block_mismatch",
    "cant_broadcast_message",
    "cant_update_message",
    "edit_window_closed",
    "external_channel_migrating",
    "invalid_attachments",
    "is_inactive",
    "message_not_found",
    "msg_too_long",
    "no_dual_broadcast_content_update",
    "update_failed",
    "streaming_state_conflict",
    "access_denied",
    "accesslimited",
    "account_inactive",
    "deprecated_endpoint",
    "enterprise_is_restricted",
    "fatal_error",
    "internal_error",
    "invalid_arg_name",
    "invalid_arguments",
    "invalid_array_arg",
    "invalid_auth",
    "invalid_charset",
    "invalid_form_data",
    "invalid_post_type",
    "method_deprecated",
    "missing_post_type",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
    "team_access_not_granted",
    "team_added_to_org",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
    "channel_is_limited_access",
    "invalid_cursor",
    "invalid_metadata_filter_keys",
    "invalid_ts_latest",
    "invalid_ts_oldest",
]
"""What Slack documents for posting, editing, every method, and reading a history."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with mirror_world(tmp_path) as opened:
        yield opened


async def owing(world: World, *items: str) -> Deliveries:
    queue = Deliveries(world.slack, channel=ALERTS)
    for item in items:
        await queue.add(item, item)
    return queue


async def owed(world: World) -> list[str]:
    return [found.item for found in reversed(await world.store.deliveries.list(APP, ALERTS, "owed", 50))]


@pytest.mark.parametrize("code", DOCUMENTED)
def test_every_documented_code_has_its_class(code: str) -> None:
    assert code in ERROR_CLASSES


async def test_a_code_that_nobody_knows_sets_nothing_aside_and_the_others_go_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await owing(world, "a", "b")
    world.sandbox.faults.fail_next(POST, UNKNOWN)
    report = await queue.deliver()
    assert (report.delivered, report.waiting, report.refused, report.stopped) == (1, 1, 0, None)
    assert await owed(world) == ["a"]
    (error,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "shop/C0ALERTS/a" in error.message
    assert "a_code_of_next_year" in error.message
    found = await world.store.deliveries.get(APP, ALERTS, "a")
    assert found is not None
    assert (found.set_aside_at, found.in_doubt_since) == (None, None)
    assert "a_code_of_next_year" in str(found.note)
    assert (await queue.deliver()).delivered == 1
    assert world.posted() == ["b", "a"]


async def test_three_unknown_codes_in_a_row_end_the_deliver(world: World) -> None:
    queue = await owing(world, *"abcdef")
    world.sandbox.faults.fail_next(POST, *[UNKNOWN] * 6)
    report = await queue.deliver()
    assert isinstance(report.stopped, ApiError)
    assert (report.stopped.kind, report.waiting, world.calls(POST)) == (ErrorClass.UNKNOWN, 3, 3)
    assert await owed(world) == list("abcdef")


@pytest.mark.parametrize("code", sorted(ERROR_CLASSES))
async def test_only_codes_about_the_content_set_an_item_aside(world: World, code: str) -> None:
    queue = await owing(world, "a")
    world.sandbox.faults.fail_next(POST, Fault.refused(code))
    report = await queue.deliver()
    assert (report.refused == 1) is (error_class(code) is ErrorClass.CONTENT)
    found = await world.store.deliveries.get(APP, ALERTS, "a")
    assert found is not None
    assert (found.set_aside_at is not None) is (error_class(code) is ErrorClass.CONTENT)
    assert (found.in_doubt_since is not None) is (error_class(code) is ErrorClass.UNCLEAR)
    assert found.delivered_at is None


async def test_what_was_set_aside_is_delivered_after_it_was_requeued(world: World) -> None:
    queue = await owing(world, "a")
    world.sandbox.faults.fail_next(POST, Fault.refused("msg_too_long"))
    await queue.deliver()
    assert (await queue.deliver()).delivered == 0
    world.clock.move(30 * 86_400_000)
    assert await world.store.deliveries.requeue(APP, ALERTS, "a") == 1
    report = await queue.deliver()
    assert (report.set_aside, report.delivered) == (0, 1)


async def test_content_that_cannot_be_read_does_not_hold_up_the_queue(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await owing(world)
    for item, content in (("a", "[]"), ("b", '{"blocks": []}'), ("c", "7")):
        await world.store.deliveries.add(APP, [NewDelivery(ALERTS, item, content, "2026-05-28")])
    await queue.add("d", "d")
    report = await queue.deliver()
    assert (report.refused, report.delivered, world.posted()) == (3, 1, ["d"])
    assert caplog.text.count("can't be read") == 3


async def test_a_part_of_a_day_is_not_less_than_a_day(world: World) -> None:
    queue = Deliveries(world.slack, channel=ALERTS, max_age=timedelta(hours=12))
    await queue.add("a", "a", due=date(2026, 5, 27))
    assert (await queue.deliver()).delivered == 1
    with pytest.raises(InvalidInputError, match="max_age"):
        Deliveries(world.slack, channel=ALERTS, max_age=timedelta(days=-1))


@pytest.mark.parametrize("code", ["a_code_of_next_year", "thread_not_found"])
async def test_a_board_tries_once_a_tick_and_is_neither_off_nor_parked(
    world: World, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    board = StatusBoard(world.slack, "services", channel=STATUS)
    assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.POSTED
    world.sandbox.faults.fail_next(UPDATE, *[Fault.refused(code)] * 3)
    for calls in (1, 2, 3):
        world.clock.move(60_000)
        assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.FAILED
        assert world.calls(UPDATE) == calls
    assert [record.levelname for record in caplog.records if code in record.message] == ["ERROR"] * 3
    world.clock.move(60_000)
    assert await board.publish(await board.fetch(lambda: ())) is BoardOutcome.EDITED
