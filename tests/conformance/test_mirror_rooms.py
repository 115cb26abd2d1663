from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.core.errors import NotFoundError, WrongStateError
from kizami.store.protocol import (
    BoardEdit,
    BoardPost,
    CursorMove,
    LeaseFence,
)
from kizami.store.rooms import boards, deliveries, leases
from tests.conformance.mirror_rooms import (
    APP,
    CHANNEL,
    CLAIM_MS,
    STALE_MS,
    TODAY,
    claim,
    claim_board,
    claimed,
    claimed_board,
    new,
    owed,
    take,
)
from tests.conformance.mirror_store import HandClock, MirrorStore, mirror_store

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(home: Path, clock: HandClock) -> AsyncIterator[MirrorStore]:
    async with mirror_store(home, clock) as opened:
        yield opened


# --- leases ----------------------------------------------------------------------------------------------------------


async def test_of_many_runs_at_once_one_gets_the_lease(store: MirrorStore) -> None:
    answers = await asyncio.gather(*(take(store, f"run-{number}") for number in range(20)))
    assert answers.count(True) == 1


async def test_a_lease_is_taken_over_only_when_its_beat_is_strictly_older_than_the_window(
    store: MirrorStore, clock: HandClock
) -> None:
    assert await take(store, "a")
    clock.move(STALE_MS)
    assert not await take(store, "b")
    clock.move(1)
    assert await take(store, "b")
    assert not await store.leases.renew(APP, LeaseFence("mirror", "a"))
    assert not await store.leases.release(APP, LeaseFence("mirror", "a"))
    assert await store.leases.is_held(APP, LeaseFence("mirror", "b"))


async def test_a_beat_keeps_the_lease(store: MirrorStore, clock: HandClock) -> None:
    assert await take(store, "a")
    clock.move(STALE_MS)
    assert store.leases.renew_blocking(APP, LeaseFence("mirror", "a"))
    clock.move(STALE_MS)
    assert not await take(store, "b")


async def test_taking_a_lease_again_after_a_lost_answer_is_harmless(store: MirrorStore, clock: HandClock) -> None:
    assert await take(store, "a")
    clock.move(1_000)
    assert await take(store, "a")
    (lease,) = await store.leases.list(APP)
    assert (lease.run_id, lease.started_at, lease.heartbeat_at) == ("a", clock.now - 1_000, clock.now)


async def test_a_buried_worker_leaves_nothing_taken_and_its_doubts_unsettled(store: MirrorStore) -> None:
    assert await take(store, "a")
    await store.deliveries.add(APP, [new("x")])
    intent = await store.deliveries.intend(APP, await claimed(store, "x"), None)
    await claimed_board(store)

    def bury(connection: object, _: object) -> None:
        for room in (leases, deliveries, boards):
            room.free_of(connection, "w1")

    await store.database.write(bury)
    assert await take(store, "b", worker="w2")
    assert (await claimed(store, "x", "t2")).unsettled == (intent,)
    assert await claim_board(store, "t2") is not None


# --- deliveries ------------------------------------------------------------------------------------------------------


async def test_the_missing_marker_is_the_queue_by_due_date_then_order_of_adding(store: MirrorStore) -> None:
    later = new("later", "2026-06-02")
    assert await store.deliveries.add(APP, [later, new("b"), new("a"), new("old", "2026-05-01")]) == (True,) * 4
    assert await owed(store) == ["old", "b", "a"]
    first = (await store.deliveries.owed(APP, CHANNEL, TODAY, 1))[0]
    rest = await store.deliveries.owed(APP, CHANNEL, "2026-06-02", 10, after=first)
    assert [place.item for place in rest] == ["b", "a", "later"]
    assert await store.deliveries.mark(APP, await claimed(store, "b"), "C1", "1.1", None, None)
    assert await owed(store) == ["old", "a"]


async def test_adding_an_item_again_changes_nothing(store: MirrorStore) -> None:
    assert await store.deliveries.add(APP, [new("x"), new("x")]) == (True, False)
    assert await store.deliveries.add(APP, [new("x")]) == (False,)
    assert await owed(store) == ["x"]


async def test_of_many_claims_at_once_one_lands(store: MirrorStore) -> None:
    await store.deliveries.add(APP, [new("x")])
    answers = await asyncio.gather(*(claim(store, "x", f"t{number}") for number in range(20)))
    assert sum(answer is not None for answer in answers) == 1
    assert await owed(store) == []


async def test_an_expired_claim_can_be_taken_and_its_old_token_marks_nothing(
    store: MirrorStore, clock: HandClock
) -> None:
    await store.deliveries.add(APP, [new("x")])
    first = await claimed(store, "x", "t1")
    clock.move(CLAIM_MS - 1)
    assert await claim(store, "x", "t2") is None
    clock.move(1)
    second = await claimed(store, "x", "t2")
    assert not await store.deliveries.mark(APP, first, "C1", "1.1", None, None)
    assert await store.deliveries.mark(APP, second, "C1", "1.2", None, None)
    found = await store.deliveries.get(APP, CHANNEL, "x")
    assert found is not None
    assert found.ts == "1.2"


async def test_an_intent_starts_the_time_of_its_claim_anew(store: MirrorStore, clock: HandClock) -> None:
    """However long the look-up took, the claim outlasts the call."""
    await store.deliveries.add(APP, [new("x")])
    first = await claimed(store, "x")
    clock.move(CLAIM_MS - 1)
    assert await store.deliveries.intend(APP, first, None) is not None
    clock.move(CLAIM_MS - 1)
    assert await claim(store, "x", "t2") is None


async def test_marking_again_after_a_lost_answer_is_harmless(store: MirrorStore) -> None:
    await store.deliveries.add(APP, [new("x")])
    mine = await claimed(store, "x")
    assert await store.deliveries.mark(APP, mine, "C1", "1.1", None, None)
    assert await store.deliveries.mark(APP, mine, "C1", "1.1", None, None)
    assert not await store.deliveries.mark(APP, mine, "C1", "1.2", None, None)
    assert await claim(store, "x", "t2") is None


async def test_an_unsettled_intent_puts_an_item_in_doubt_until_it_is_settled(
    store: MirrorStore, clock: HandClock
) -> None:
    await store.deliveries.add(APP, [new("x")])
    mine = await claimed(store, "x")
    intent = await store.deliveries.intend(APP, mine, None)
    assert intent is not None
    assert (intent.attempt, intent.attempted_at) == (1, clock.now)
    assert await store.deliveries.hand_back(APP, mine, "no answer")
    assert (await store.deliveries.owed(APP, CHANNEL, TODAY, 1))[0].in_doubt_since == clock.now
    assert await store.deliveries.counts(APP) == {CHANNEL: {"owed": 0, "delivered": 0, "in_doubt": 1, "set_aside": 0}}
    assert [found.note for found in await store.deliveries.list(APP, None, "in_doubt", 5)] == ["no answer"]
    again = await claimed(store, "x", "t2")
    assert again.unsettled == (intent,)
    assert not await store.deliveries.settle(APP, mine, intent, "not ours")
    assert await store.deliveries.settle(APP, again, intent, "absent")
    assert (await store.deliveries.counts(APP))[CHANNEL]["owed"] == 1


async def test_what_is_set_aside_leaves_the_queue_and_stays_visible(store: MirrorStore) -> None:
    await store.deliveries.add(APP, [new("x"), new("old", "2026-05-20"), new("edge", "2026-05-25")])
    assert await store.deliveries.set_aside_old(APP, CHANNEL, "2026-05-25", "older than 7 days") == 1
    assert await store.deliveries.hand_back(APP, await claimed(store, "x"), "refused", set_aside=True)
    assert await owed(store) == ["edge"]
    aside = await store.deliveries.list(APP, CHANNEL, "set_aside", 5)
    assert {found.item: found.note for found in aside} == {"x": "refused", "old": "older than 7 days"}


async def test_a_run_that_lost_its_lease_writes_nothing(store: MirrorStore, clock: HandClock) -> None:
    """Each fenced write names the run in its own statement, so a takeover between two calls stops the next one."""
    fence = LeaseFence("mirror", "a")
    assert await take(store, "a")
    await store.deliveries.add(APP, [new("x")], fence=fence)
    mine = await claimed(store, "x", "t1", fence)
    board = await store.boards.claim(APP, "services", CHANNEL, "t1", CLAIM_MS, "w1", fence)
    assert board is not None
    clock.move(STALE_MS + 1)
    assert await take(store, "b")
    assert await store.deliveries.add(APP, [new("y")], CursorMove("source", None, "7"), fence) is None
    assert await store.cursors.position(APP, "source") is None
    assert await store.deliveries.intend(APP, mine, fence) is None
    assert not await store.deliveries.mark(APP, mine, "C1", "1.1", None, fence)
    assert await claim(store, "x", "t2", fence) is None
    assert await store.boards.intend_post(APP, board, 1, fence) is None
    assert not await store.boards.intend_edit(APP, board, 1, fence)
    assert not await store.boards.mark_posted(APP, board, BoardPost("C1", "1.1", 1, "h"), fence)
    assert not await store.boards.forget_message(APP, board, "gone", HOUR_MS, fence)
    assert await store.boards.claim(APP, "services", CHANNEL, "t2", CLAIM_MS, "w1", fence) is None
    assert await store.boards.claim(APP, "other", CHANNEL, "t2", CLAIM_MS, "w1", fence) is None
    assert await store.deliveries.set_aside_old(APP, CHANNEL, "2027-01-01", "too old", fence) == 0
    assert await owed(store) == ["x"]


@pytest.mark.parametrize("item", ["x", None])
async def test_what_was_set_aside_is_owed_again_and_not_set_aside_for_its_old_date(
    store: MirrorStore, clock: HandClock, item: str | None
) -> None:
    await store.deliveries.add(APP, [new("x", "2026-04-01"), new("y", "2026-05-28")])
    intent = await store.deliveries.intend(APP, await claimed(store, "x"), None)
    assert await store.deliveries.hand_back(APP, await claimed(store, "x"), "refused", set_aside=True)
    assert await store.deliveries.requeue(APP, CHANNEL, item) == 1
    assert await store.deliveries.set_aside_old(APP, CHANNEL, "2026-05-21", "too old") == 0
    found = await store.deliveries.get(APP, CHANNEL, "x")
    assert found is not None
    assert (found.due, found.note) == ("2026-05-27", "requeued, was due 2026-04-01: refused")
    assert await owed(store, "2026-05-28") == ["x", "y"]
    assert (await claimed(store, "x")).unsettled == (intent,)
    assert clock.slept == []


async def test_only_what_is_set_aside_can_be_requeued(store: MirrorStore) -> None:
    await store.deliveries.add(APP, [new("owed"), new("delivered")])
    assert await store.deliveries.mark(APP, await claimed(store, "delivered"), "C1", "1.1", None, None)
    for item in ("owed", "delivered"):
        with pytest.raises(WrongStateError, match="is not set aside"):
            await store.deliveries.requeue(APP, CHANNEL, item)
    with pytest.raises(NotFoundError, match="no delivery absent"):
        await store.deliveries.requeue(APP, CHANNEL, "absent")
    with pytest.raises(NotFoundError, match="no deliveries to C9"):
        await store.deliveries.requeue(APP, "C9")
    assert await store.deliveries.requeue(APP, CHANNEL) == 0


async def test_an_acknowledgement_that_touched_no_row_is_counted(store: MirrorStore) -> None:
    await store.deliveries.add(APP, [new("x")])
    await store.deliveries.count_possible_duplicate(APP, CHANNEL, "x", "marked by somebody else")
    found = await store.deliveries.get(APP, CHANNEL, "x")
    assert found is not None
    assert (found.possible_duplicates, found.note) == (1, "marked by somebody else")


# --- gates -----------------------------------------------------------------------------------------------------------


async def test_a_gate_is_closed_for_its_time_and_the_longer_closing_stays(store: MirrorStore, clock: HandClock) -> None:
    """B074: one shared gate, stored."""
    await store.gates.close(APP, "chat.postMessage", CHANNEL, 7_000, "429")
    await store.gates.close(APP, "chat.postMessage", CHANNEL, 3_000, "429")
    (gate,) = await store.gates.closed(APP)
    assert (gate.method, gate.channel, gate.remaining_ms) == ("chat.postMessage", CHANNEL, 7_000)
    clock.move(6_999)
    assert (await store.gates.closed(APP))[0].remaining_ms == 1
    clock.move(1)
    assert await store.gates.closed(APP) == ()


# --- boards ----------------------------------------------------------------------------------------------------------


async def post(store: MirrorStore, synced_at: int, ticket: str = "t1") -> None:
    mine = await claimed_board(store, ticket)
    assert await store.boards.intend_post(APP, mine, synced_at, None) is not None
    assert await store.boards.mark_posted(APP, mine, BoardPost("C1", "1780000000.000240", synced_at, "h1"), None)


async def test_a_board_is_claimed_by_one_and_keeps_its_ts_as_text(store: MirrorStore) -> None:
    answers = await asyncio.gather(*(claim_board(store, f"t{number}") for number in range(10)))
    assert sum(answer is not None for answer in answers) == 1
    (winner,) = (answer for answer in answers if answer)
    assert await store.boards.intend_post(APP, winner, 1, None) is not None
    assert await store.boards.mark_posted(APP, winner, BoardPost("C1", "1780000000.000240", 1, "h"), None)
    (board,) = await store.boards.list(APP)
    assert (board.ts, board.posts, board.in_doubt_since) == ("1780000000.000240", 1, None)


async def test_older_data_is_not_even_tried_after_newer_was(store: MirrorStore) -> None:
    """The newer edit may have been applied although its answer was lost."""
    await post(store, synced_at=100)
    newer = await claimed_board(store)
    assert await store.boards.intend_edit(APP, newer, 300, None)
    await store.boards.hand_back(APP, newer, "no answer")
    older = await claimed_board(store, "t2")
    assert not await store.boards.intend_edit(APP, older, 200, None)
    assert await store.boards.intend_post(APP, older, 200, None) is None
    assert await store.boards.intend_edit(APP, older, 300, None)
    assert await store.boards.mark_edited(APP, older, BoardEdit(300, "h2"), None)
    (board,) = await store.boards.list(APP)
    assert (board.synced_at, board.edits, board.content_hash) == (300, 1, "h2")


async def test_a_message_is_given_up_once_in_its_time(store: MirrorStore, clock: HandClock) -> None:
    await post(store, synced_at=1)
    mine = await claimed_board(store)
    assert await store.boards.forget_message(APP, mine, "deleted", HOUR_MS, None)
    clock.move(HOUR_MS - 1)
    mine = await claimed_board(store)
    assert not await store.boards.forget_message(APP, mine, "deleted", HOUR_MS, None)
    clock.move(1)
    assert await store.boards.forget_message(APP, mine, "deleted", HOUR_MS, None)
    clock.move(-24 * HOUR_MS)  # a wall clock that was ahead and is set right must not hold up a new message for a day
    assert await store.boards.forget_message(APP, await claimed_board(store), "deleted", HOUR_MS, None)


async def test_a_board_that_is_off_comes_back_in_another_channel_or_when_switched_on(store: MirrorStore) -> None:
    await post(store, synced_at=1)
    assert await store.boards.hand_back(APP, await claimed_board(store), "is_archived", off=True)
    assert (await claimed_board(store)).board.off
    assert await store.boards.switch_on(APP, "services", CHANNEL)
    assert not await store.boards.switch_on(APP, "services", CHANNEL)
    await store.boards.hand_back(APP, await claimed_board(store), "is_archived", off=True)
    moved = await claimed_board(store, channel="C2")
    assert (moved.board.off, moved.board.ts, moved.board.channel) == (False, None, "C2")
    assert [(board.channel, board.ts, board.off) for board in await store.boards.list(APP)] == [
        (CHANNEL, "1780000000.000240", True),
        ("C2", None, False),
    ]


async def test_an_edit_that_is_not_acknowledged_leaves_unknown_what_is_shown(store: MirrorStore) -> None:
    await post(store, synced_at=1)
    assert await store.boards.intend_edit(APP, await claimed_board(store), 2, None)
    assert [board.content_hash for board in await store.boards.list(APP)] == [None]


async def test_a_board_s_acknowledgement_that_touched_no_row_is_counted(store: MirrorStore) -> None:
    await post(store, synced_at=1)
    late = await claimed_board(store)
    await store.boards.hand_back(APP, late, None)
    await store.boards.distrust(APP, late, "an edit", posted=False)
    await store.boards.distrust(APP, late, "a post", posted=True)
    (board,) = await store.boards.list(APP)
    assert (board.content_hash, board.possible_duplicates, board.note) == (None, 1, "a post")


async def test_parked_content_is_remembered(store: MirrorStore) -> None:
    await post(store, synced_at=1)
    assert await store.boards.park(APP, await claimed_board(store), "h9", "invalid_blocks")
    (board,) = await store.boards.list(APP)
    assert (board.parked_hash, board.note, board.off) == ("h9", "invalid_blocks", False)


async def test_a_database_has_an_id_of_its_own_for_good(store: MirrorStore, tmp_path: Path, clock: HandClock) -> None:
    mine = await store.identity.database_id()
    assert len(mine) == 16
    assert await store.identity.database_id() == mine
    other = tmp_path / "other"
    other.mkdir()
    async with mirror_store(other, clock) as another:
        assert await another.identity.database_id() != mine
