"""A part of the suite through pgbouncer in transaction mode: every transaction may have another connection."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kizami.store.protocol import Store
from tests.conformance import test_job_claims, test_job_operations, test_job_queue, test_schedule_fires
from tests.conformance.postgres_home import clear, furnish, settle_in
from tests.conformance.whole_store import StillClock, employ, whole_store
from tests.own_postgres import own_postgres, pooler

PROMISES: list[Callable[..., Any]] = [
    test_job_queue.test_two_workers_share_no_job,
    test_job_queue.test_jobs_are_enqueued_all_or_none,
    test_job_queue.test_a_delayed_job_waits_for_its_time,
    test_job_claims.test_after_a_takeover_the_first_worker_changes_nothing,
    test_job_claims.test_the_last_twenty_attempts_are_kept,
    test_job_claims.test_progress_is_kept_and_a_sign_of_life_puts_off_the_end,
    test_job_operations.test_a_manual_retry_allows_max_attempts_more_and_keeps_the_log,
    test_job_operations.test_pages_show_each_job_once_while_others_come_and_go,
    test_schedule_fires.test_two_schedulers_fire_each_tick_once,
    test_schedule_fires.test_a_held_lease_refuses_a_manual_fire_with_its_holder,
    test_schedule_fires.test_the_ledger_and_the_counters_agree_with_the_plan,
]


@pytest.fixture(scope="module")
def pooled() -> Iterator[tuple[str, str]]:
    """Give the URLs of one furnished database, straight and through a pooler."""
    with own_postgres() as server, pooler(server.url) as url:
        furnish(server.url)
        yield server.url, url


@pytest.fixture
async def whole(pooled: tuple[str, str], tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Store]:
    straight, through = pooled
    clear(straight)
    settle_in(tmp_path, through)
    async with whole_store(tmp_path, still_clock) as opened:
        await employ(opened, "w1", "w2", "w3")
        yield opened


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("test_"))
async def test_it_keeps(promise: Callable[..., Any], whole: Store, tmp_path: Path, still_clock: StillClock) -> None:
    given = {"whole": whole, "tmp_path": tmp_path, "still_clock": still_clock}
    await promise(**{name: given[name] for name in inspect.signature(promise).parameters})
