"""Which code's schedules are in force: the newest that a living worker runs, in whatever order processes start."""

from __future__ import annotations

import pytest

from kizami.store.protocol import Editions, Registration, ScheduleDefinition, Store, Superseded, edition_fingerprint
from kizami.store.protocol.schedules import SILENT_MS
from tests.conformance.planned import MINUTE_MS, NAME, defined, planned_at
from tests.conformance.whole_store import APP, StillClock, employ

FIRST, SECOND, THIRD = (defined(note=f"edition {number}") for number in (1, 2, 3))


async def run(store: Store, worker_id: str, *definitions: ScheduleDefinition) -> Registration:
    """Start code in a worker."""
    return await store.schedules.register(APP, definitions, worker_id=worker_id)


async def in_force(store: Store) -> dict[str, str]:
    """Return what is defined now, by the notes of the definitions."""
    return {each.name: each.description for each in await store.schedules.list(APP)}


async def test_an_old_process_that_restarts_leaves_newer_code_in_force(whole: Store) -> None:
    """However often, and whichever of its workers it is."""
    await run(whole, "w1", FIRST)
    newer = await run(whole, "w2", SECOND)
    assert (newer.edition, newer.versions, newer.superseded) == (2, {NAME: 2}, ())
    for worker_id in ("w1", "w3", "w1"):
        old = await run(whole, worker_id, FIRST)
        assert (old.edition, old.editions, old.versions) == (1, Editions(in_force=2, others=2), {})
        assert old.superseded == (Superseded(NAME, version=1, by_version=2, removed=False),)
    assert await in_force(whole) == {NAME: "edition 2"}


async def test_processes_of_one_code_share_its_versions(whole: Store) -> None:
    answers = [await run(whole, worker_id, FIRST, defined("other")) for worker_id in ("w1", "w2", "w3", "w1")]
    assert [answer.versions for answer in answers] == [{NAME: 1, "other": 1}] * 4
    assert [answer.editions.in_force for answer in answers] == [1] * 4


async def test_what_both_codes_define_alike_belongs_to_both(whole: Store) -> None:
    await run(whole, "w1", FIRST, defined("same"))
    await run(whole, "w2", SECOND, defined("same"))
    assert (await run(whole, "w1", FIRST, defined("same"))).versions == {"same": 1}


async def test_an_old_process_that_restarts_brings_back_nothing_that_newer_code_removed(whole: Store) -> None:
    await run(whole, "w1", FIRST, defined("removed"))
    await run(whole, "w2", FIRST)
    old = await run(whole, "w1", FIRST, defined("removed"))
    assert old.superseded == (Superseded("removed", version=1, by_version=2, removed=True),)
    assert await in_force(whole) == {NAME: "edition 1"}


async def test_an_old_process_that_restarts_removes_nothing_that_newer_code_added(whole: Store) -> None:
    await run(whole, "w1", FIRST)
    await run(whole, "w2", FIRST, defined("added"))
    assert (await run(whole, "w1", FIRST)).superseded == ()
    assert set(await in_force(whole)) == {NAME, "added"}


@pytest.mark.parametrize("leaves", ["leave", "bury"])
async def test_rolled_back_code_is_in_force_once_no_worker_runs_the_newer(whole: Store, leaves: str) -> None:
    """Without any flag, and with a version that has grown again."""
    await run(whole, "w1", FIRST, defined("removed"))
    await run(whole, "w2", SECOND)
    await getattr(whole.workers, leaves)("w2")
    back = await run(whole, "w1", FIRST, defined("removed"))
    assert (back.edition, back.versions, back.superseded) == (1, {NAME: 3, "removed": 3}, ())
    assert await in_force(whole) == {NAME: "edition 1", "removed": ""}


async def test_newer_code_that_comes_back_is_in_force_at_once(whole: Store) -> None:
    """Its only worker restarted, and an old one was quicker."""
    await run(whole, "w1", FIRST)
    await run(whole, "w2", SECOND)
    await whole.workers.leave("w2")
    await run(whole, "w1", FIRST)
    await employ(whole, "w2")
    assert (await run(whole, "w2", SECOND)).versions == {NAME: 4}
    assert (await run(whole, "w1", FIRST)).versions == {}


async def test_of_three_codes_the_newest_living_one_is_in_force(whole: Store) -> None:
    for worker_id, definition in (("w1", FIRST), ("w2", SECOND), ("w3", THIRD)):
        await run(whole, worker_id, definition)
    await whole.workers.leave("w3")
    assert (await run(whole, "w1", FIRST)).editions == Editions(in_force=3, others=2)
    assert (await run(whole, "w2", SECOND)).editions == Editions(in_force=2, others=1)
    assert await in_force(whole) == {NAME: "edition 2"}


async def test_a_worker_that_gives_no_sign_of_life_counts_as_gone(whole: Store, still_clock: StillClock) -> None:
    """One in another process namespace is never seen to die."""
    await run(whole, "w1", FIRST)
    await run(whole, "w2", SECOND)
    still_clock.move(SILENT_MS)
    assert (await run(whole, "w1", FIRST)).versions == {}
    whole.jobs.vouch_blocking("w2", [])
    still_clock.move(SILENT_MS)
    assert (await run(whole, "w1", FIRST)).versions == {}
    still_clock.move(1)
    assert (await run(whole, "w1", FIRST)).versions == {NAME: 3}


async def outside(store: Store, *definitions: ScheduleDefinition, redefine: bool = False) -> dict[str, int]:
    """Return the versions in force after a call from outside."""
    return (await store.schedules.register(APP, definitions, redefine=redefine)).versions


async def test_a_call_from_outside_changes_and_removes_nothing(whole: Store) -> None:
    """Also where no worker lives: it may come from old code."""
    await run(whole, "w1", SECOND, defined("kept"))
    await run(whole, "w1", SECOND, defined("kept"), defined("dropped"))
    await run(whole, "w1", SECOND, defined("kept"))
    for lives in (True, False):
        assert await outside(whole, FIRST, defined("dropped")) == {}
        assert await outside(whole, SECOND) == {NAME: 1}
        assert await in_force(whole) == {NAME: "edition 2", "kept": ""}
        if lives:
            await whole.workers.leave("w1")


async def test_a_call_from_outside_adds_what_was_never_stored_where_no_worker_lives(whole: Store) -> None:
    assert await outside(whole, FIRST) == {NAME: 1}
    assert await outside(whole, FIRST, defined("added")) == {NAME: 1, "added": 1}
    assert await whole.schedules.editions(APP) == Editions(in_force=0, others=0)
    assert (await run(whole, "w1", FIRST)).versions == {NAME: 1}
    assert await outside(whole, FIRST, defined("more")) == {NAME: 1}
    assert await in_force(whole) == {NAME: "edition 1"}


async def test_a_call_from_outside_that_redefines_does_so_only_where_no_worker_lives(whole: Store) -> None:
    await run(whole, "w1", SECOND)
    assert await outside(whole, THIRD, redefine=True) == {}
    await whole.workers.leave("w1")
    assert await outside(whole, THIRD, redefine=True) == {NAME: 2}
    assert await in_force(whole) == {NAME: "edition 3"}


async def test_two_apps_on_one_database_have_editions_of_their_own(whole: Store) -> None:
    await run(whole, "w1", FIRST)
    await whole.schedules.register("elsewhere", [SECOND], redefine=True)
    assert await whole.schedules.editions("elsewhere") == Editions(in_force=1, others=0)
    assert await whole.schedules.editions(APP) == Editions(in_force=1, others=1)
    assert await whole.schedules.editions(APP, besides="w1") == Editions(in_force=1, others=0)


async def test_coming_back_into_force_keeps_the_plan_where_the_timing_is_the_same(
    whole: Store, still_clock: StillClock
) -> None:
    await run(whole, "w1", FIRST)
    planned = await planned_at(whole)
    for worker_id, definition in (("w2", SECOND), ("w1", FIRST)):
        still_clock.move(MINUTE_MS)
        await run(whole, worker_id, definition)
        assert await planned_at(whole) == planned


def test_an_edition_is_its_schedules_in_any_order() -> None:
    assert edition_fingerprint([FIRST, defined("b")]) == edition_fingerprint([defined("b"), FIRST])
    assert len({edition_fingerprint(each) for each in ([], [FIRST], [SECOND], [FIRST, defined("b")])}) == 4
