"""Bindings: declared by code, changed at run time, told about."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kizami.core.dispatch import Wait
from kizami.core.errors import DefinitionError, NotFoundError
from kizami.core.options import JobOptions
from kizami.core.policy import Policy, Rate, Retention
from kizami.store.protocol import BindingDeclaration, Store
from tests.conformance.whole_store import APP, BINDING, START_MS, StillClock, local_ids, new_job, take

DECLARED = BindingDeclaration(
    BINDING,
    Policy(7, Rate(3, timedelta(minutes=1)), 2, None, timedelta(seconds=9)),
    Retention(timedelta(days=1), timedelta(days=30)),
    shards=3,
    requires_concurrency_key=True,
    requires_unique_key=True,
    payload_schema='{"type":"object"}',
)


async def test_a_declaration_is_kept_whole(whole: Store) -> None:
    await whole.bindings.declare(APP, [DECLARED, BindingDeclaration("other")])
    stored = await whole.bindings.get(APP, BINDING)
    assert stored is not None
    assert (stored.declared, stored.declared_at) == (DECLARED, START_MS)
    assert [one.name for one in await whole.bindings.list(APP)] == ["other", BINDING]
    assert await whole.bindings.list("elsewhere") == ()
    assert await whole.bindings.get(APP, "unknown") is None


async def test_an_equal_declaration_writes_nothing_and_a_changed_one_replaces(
    whole: Store, still_clock: StillClock
) -> None:
    await whole.bindings.declare(APP, [DECLARED])
    still_clock.move(5)
    await whole.bindings.declare(APP, [DECLARED])
    assert [one.declared_at for one in await whole.bindings.list(APP)] == [START_MS]
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    assert [one.declared_at for one in await whole.bindings.list(APP)] == [START_MS + 5]


async def test_an_override_is_in_force_at_once_survives_deploys_and_is_taken_back(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=5))])
    await whole.jobs.enqueue([new_job(f"j{number}") for number in range(9)])
    changed = await whole.bindings.configure(APP, BINDING, {"concurrency": 1})
    assert changed.policy == Policy(concurrency=1)
    assert local_ids(await take(whole)) == ["j0"]
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=4))])
    assert await take(whole) == []
    back = await whole.bindings.configure(APP, BINDING, None)
    assert (back.override, back.policy) == (None, Policy(concurrency=4))
    assert local_ids(await take(whole)) == ["j1", "j2", "j3"]


async def test_a_wrong_override_is_refused_and_changes_nothing(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    with pytest.raises(DefinitionError, match="concurrency is 0"):
        await whole.bindings.configure(APP, BINDING, {"concurrency": 0})
    stored = await whole.bindings.get(APP, BINDING)
    assert stored is not None
    assert stored.policy == Policy()


async def test_an_operation_on_no_binding_says_so(whole: Store) -> None:
    with pytest.raises(NotFoundError, match="no binding unknown"):
        await whole.bindings.configure(APP, "unknown", None)
    for operation in (whole.bindings.pause, whole.bindings.resume):
        with pytest.raises(NotFoundError, match="no binding unknown"):
            await operation(APP, "unknown")


async def test_a_pause_survives_a_new_declaration(whole: Store) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING)])
    await whole.bindings.pause(APP, BINDING)
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=4))])
    assert [one.paused_at for one in await whole.bindings.list(APP)] == [START_MS]


async def test_the_diagnosis_says_what_every_unstarted_job_waits_for(whole: Store, still_clock: StillClock) -> None:
    await whole.bindings.declare(APP, [BindingDeclaration(BINDING, Policy(concurrency=3))])
    key = JobOptions(concurrency_key="k")
    jobs = [new_job("k1", key), new_job("k2", key), *(new_job(f"j{number}") for number in range(4))]
    await whole.jobs.enqueue([*jobs, new_job("later", delay_ms=10_000)])
    assert len(await take(whole, limit=2)) == 2
    (diagnosis,) = await whole.bindings.diagnose(APP)
    expected = {Wait.WORKER: 1, Wait.CAPACITY: 2, Wait.TOKENS: 0, Wait.KEY: 1, Wait.PAUSED: 0, Wait.NOT_YET_DUE: 1}
    assert (diagnosis.active, dict(diagnosis.waiting), diagnosis.oldest_due_at) == (2, expected, START_MS)
    await whole.bindings.pause(APP, BINDING)
    still_clock.move(10_000)
    (paused,) = await whole.bindings.diagnose(APP)
    assert (paused.waiting[Wait.PAUSED], paused.waiting[Wait.NOT_YET_DUE]) == (4, 0)
    assert paused.binding.paused_at == START_MS


async def test_work_that_no_worker_knows_stays_ready_with_a_growing_age(whole: Store, still_clock: StillClock) -> None:
    """B068: neither failed nor discarded, attempts unchanged, and its age is there to see."""
    await whole.jobs.enqueue([new_job("a", binding="newer"), new_job("b", binding="newer", delay_ms=1)])
    still_clock.move(60_000)
    assert await take(whole) == []
    (diagnosis,) = await whole.bindings.diagnose(APP)
    assert (diagnosis.waiting[Wait.WORKER], diagnosis.oldest_due_at) == (2, START_MS)
    assert local_ids(await take(whole, bindings=("newer",))) == ["a", "b"]
