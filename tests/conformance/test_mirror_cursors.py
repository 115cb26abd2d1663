from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.core.errors import CursorMovedError
from kizami.store.protocol import CursorMove, LeaseFence
from tests.conformance.mirror_rooms import APP, new, owed, take
from tests.conformance.mirror_store import HandClock, MirrorStore, mirror_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MirrorStore]:
    async with mirror_store(tmp_path, HandClock()) as opened:
        yield opened


async def test_a_cursor_moves_in_the_transaction_that_adds(store: MirrorStore) -> None:
    assert await store.deliveries.add(APP, [new("x")], CursorMove("source", None, "7")) == (True,)
    assert await store.cursors.position(APP, "source") == "7"
    assert await store.deliveries.add(APP, [], CursorMove("source", "7", "[8]")) == ()
    assert await store.cursors.position(APP, "source") == "[8]"


@pytest.mark.parametrize("read", [None, "6", "8"], ids=["first", "behind", "ahead"])
async def test_a_cursor_that_was_moved_in_between_is_not_moved_and_nothing_is_added(
    store: MirrorStore, read: str | None
) -> None:
    await store.deliveries.add(APP, [], CursorMove("source", None, "7"))
    with pytest.raises(CursorMovedError, match="another worker moved it") as refused:
        await store.deliveries.add(APP, [new("x")], CursorMove("source", read, "9"))
    assert refused.value.facts == {"cursor": "source", "read": read, "found": "7"}
    assert await store.cursors.position(APP, "source") == "7"
    assert await owed(store) == []


@pytest.mark.parametrize("start", [None, "7"])
async def test_of_concurrent_movers_one_lands_and_the_others_keep_nothing(
    store: MirrorStore, start: str | None
) -> None:
    if start is not None:
        await store.deliveries.add(APP, [], CursorMove("source", None, start))
    moves = [store.deliveries.add(APP, [new(f"x{n}")], CursorMove("source", start, f"1{n}")) for n in range(10)]
    answers = await asyncio.gather(*moves, return_exceptions=True)
    assert answers.count((True,)) == 1
    assert sum(isinstance(answer, CursorMovedError) for answer in answers) == 9
    winner = answers.index((True,))
    assert await owed(store) == [f"x{winner}"]
    assert await store.cursors.position(APP, "source") == f"1{winner}"


async def test_a_run_without_its_lease_is_told_from_one_that_adds_nothing(store: MirrorStore) -> None:
    assert await take(store, "a")
    assert await store.deliveries.add(APP, [], CursorMove("source", None, "7"), LeaseFence("mirror", "b")) is None
    assert await store.deliveries.add(APP, [], CursorMove("source", None, "7"), LeaseFence("mirror", "a")) == ()
