"""What SQLite measures by the boot clock: steps of the wall clock don't touch it, and a reboot ends it.

PostgreSQL has one clock, the database's; the suite on both stores covers that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.core.policy import Rate
from kizami.store.protocol import LeaseFence, Store
from kizami.store.sqlite.transaction import DIALECT
from kizami.store.statements import Statement
from tests.conformance import mirror_rooms as rooms
from tests.conformance import test_job_claims as claims
from tests.conformance import test_job_limits as limits
from tests.conformance import test_job_lists as lists
from tests.conformance import test_schedule_editions as editions
from tests.conformance.mirror_store import HandClock, MirrorStore, sqlite_rooms
from tests.conformance.whole_store import (
    APP,
    SILENT_MS,
    StillClock,
    completed,
    employ,
    new_job,
    raw,
    report,
    sqlite_store,
    take,
)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def mirror(tmp_path: Path, clock: HandClock) -> AsyncIterator[MirrorStore]:
    async with sqlite_rooms(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
async def file(tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Store]:
    async with sqlite_store(tmp_path, still_clock) as opened:
        await employ(opened, "w1")
        yield opened


async def test_a_restarted_machine_frees_what_its_workers_held(tmp_path: Path, still_clock: StillClock) -> None:
    """B035: after a reboot the boot clock begins anew; nothing of the old boot is alive."""
    async with sqlite_store(tmp_path, still_clock) as before:
        await employ(before, "w1")
        job = await claims.claimed(before)
    still_clock.boot = 10
    async with sqlite_store(tmp_path, still_clock, "boot-2") as after:
        (taken,) = await claims.reap(after, trusted_ms=0)
        assert taken.reason == "the machine of worker w1 has been restarted"
        assert not await report(after, completed(job))


@pytest.mark.parametrize("step_ms", [365 * 86_400_000, -365 * 86_400_000])
async def test_a_step_of_the_wall_clock_reaps_nothing(file: Store, still_clock: StillClock, step_ms: int) -> None:
    """B026: silence is measured by a clock that steps don't touch."""
    await claims.claimed(file)
    still_clock.step(step_ms)
    still_clock.move(SILENT_MS)
    assert await claims.reap(file, trusted_ms=SILENT_MS) == ()
    still_clock.move(1)
    assert len(await claims.reap(file)) == 1


async def test_a_step_of_the_wall_clock_neither_ends_nor_keeps_a_lease(mirror: MirrorStore, clock: HandClock) -> None:
    assert await rooms.take(mirror, "a")
    clock.now += 100 * rooms.STALE_MS
    assert not await rooms.take(mirror, "b")
    clock.now -= 200 * rooms.STALE_MS
    clock.boot += rooms.STALE_MS + 1
    assert await rooms.take(mirror, "b")


async def test_what_another_boot_held_has_ended(tmp_path: Path, clock: HandClock) -> None:
    """Leases and claims of before a reboot are free at once, whatever the new boot clock shows."""
    async with sqlite_rooms(tmp_path, clock) as before:
        assert await rooms.take(before, "a")
        await before.deliveries.add(APP, [rooms.new("x")])
        await rooms.claimed(before, "x")
        await rooms.claimed_board(before)
    clock.boot = 5
    async with sqlite_rooms(tmp_path, clock, boot_id="boot-2") as after:
        assert not await after.leases.is_held(APP, LeaseFence("mirror", "a"))
        assert await rooms.take(after, "b")
        assert await rooms.owed(after) == ["x"]
        assert await rooms.claim(after, "x", "t2") is not None
        assert await rooms.claim_board(after, "t2") is not None


async def test_a_gate_outlives_a_reboot_but_never_its_own_length(tmp_path: Path, clock: HandClock) -> None:
    """B074: the gate survives a restart; a wall clock set back doesn't hold it shut for hours."""
    async with sqlite_rooms(tmp_path, clock) as before:
        await before.gates.close(APP, "chat.update", "", 7_000, "429")
    clock.boot = 0
    clock.now += 2_000
    async with sqlite_rooms(tmp_path, clock, boot_id="boot-2") as after:
        assert [gate.remaining_ms for gate in await after.gates.closed(APP)] == [5_000]
        clock.now -= 3_600_000
        assert [gate.remaining_ms for gate in await after.gates.closed(APP)] == [7_000]
        await after.gates.close(APP, "chat.update", "", 9_000, "429")
        assert [gate.remaining_ms for gate in await after.gates.closed(APP)] == [9_000]


async def test_the_queue_is_read_from_its_index(mirror: MirrorStore) -> None:
    """What was delivered long ago costs nothing when the next items are looked for."""
    facts = {
        "app": APP,
        "channel": rooms.CHANNEL,
        "until": rooms.TODAY,
        "limit": 9,
        "boot": 0,
        "boot_id": "",
        "after_due": "",
        "after_seq": 0,
    }
    plan = await mirror.database.read(
        lambda transaction, _: [
            row[3]
            for row in raw(transaction).execute(f"EXPLAIN QUERY PLAN {DIALECT[Statement('deliveries', 'owed')]}", facts)
        ],
    )
    assert "kizami_deliveries_owed" in plan[0]
    assert not any("TEMP B-TREE" in step or "SCAN" in step for step in plan)


async def test_the_worker_of_an_earlier_boot_counts_as_gone(file: Store) -> None:
    await employ(file, "before", boot_id="boot-0")
    await editions.run(file, "w1", editions.FIRST)
    await editions.run(file, "before", editions.SECOND)
    assert (await editions.run(file, "w1", editions.FIRST)).versions == {"report": 3}


async def test_a_step_of_the_wall_clock_ends_no_worker(file: Store, still_clock: StillClock) -> None:
    await employ(file, "w2")
    await editions.run(file, "w1", editions.FIRST)
    await editions.run(file, "w2", editions.SECOND)
    still_clock.step(10 * SILENT_MS)
    assert (await editions.run(file, "w1", editions.FIRST)).versions == {}


async def test_jobs_created_after_a_step_back_are_still_the_newest(file: Store, still_clock: StillClock) -> None:
    """B026: keys only grow, so pages stay in order and no key is given twice."""
    await file.jobs.enqueue([new_job("before")])
    still_clock.step(-3_600_000)
    await file.jobs.enqueue([new_job("after")])
    assert await lists.names(file, lists.ALL) == ["after", "before"]


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
async def test_a_step_of_the_wall_clock_makes_no_tokens(file: Store, still_clock: StillClock, step_ms: int) -> None:
    """B026, B047: the bucket counts by a clock that steps don't touch."""
    await limits.declare(file, rate=Rate(1, limits.SECOND))
    await file.jobs.enqueue([new_job(f"j{number}") for number in range(3)])
    assert len(await take(file)) == 1
    still_clock.step(step_ms)
    assert await take(file) == []
    still_clock.move(1_000)
    assert len(await take(file)) == 1
