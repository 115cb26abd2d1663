"""Two `kizami run` on one file, and a lease holder that is stopped past its staleness at the points that matter.

What was posted is counted from the sandbox's own log, in which each process has a token of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path

import pytest

from kizami.core.states import JobState
from kizami.sandbox.server import Sandbox
from kizami.slack.posting import CLAIM_MS
from kizami.store.protocol import Delivery, FireOutcome, JobFilter
from tests.crash.mirror_app import ALERTS, STATUS
from tests.crash.mirror_processes import (
    ITEMS,
    NEW,
    OLD,
    MirrorProcess,
    mirror_process,
    posts_by,
    two_tokens,
    until,
    watcher,
)

LEASE_LOST = r"WARNING kizami\.lease: lease lost: mirror"
POSSIBLE_DUPLICATE = r"WARNING kizami\.slack\.deliveries: mirrored/C0ALERTS/second: possible duplicate"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "kizami.db"


async def test_of_two_processes_on_one_file_each_tick_makes_one_job_and_each_notice_one_post(database: Path) -> None:
    sandbox = two_tokens()
    async with sandbox.serving():
        with mirror_process(sandbox, database, OLD) as one, mirror_process(sandbox, database, NEW) as other:
            await until(
                sandbox,
                lambda log: posts_by(log).total() >= 8 and all(posts_by(log, each) for each in (OLD, NEW)),
            )
            await one.stop()
            await other.stop()
    async with watcher(database).running(worker=False) as app:
        ledger = sorted(await app.schedules.ledger("second", limit=1_000), key=lambda line: line.planned_at)
        jobs = (await app.store.jobs.list(JobFilter("mirrored", limit=200))).jobs
        counts = await app.store.deliveries.counts("mirrored")
    for before, after in pairwise(ledger):
        assert after.planned_at == before.planned_last_at + 1_000
    made = [line.job_id for line in ledger if line.job_id is not None]
    assert sorted(made) == sorted(job.job_id for job in jobs)
    assert {job.state for job in jobs} == {JobState.COMPLETED}
    mirrored = [line for line in ledger if line.outcome is FireOutcome.FIRED]
    assert posts_by(sandbox.log) == {str(line.planned_at): 1 for line in mirrored}
    assert counts[ALERTS] == {"owed": 0, "delivered": len(mirrored), "in_doubt": 0, "set_aside": 0}
    assert len(sandbox.log.posts(STATUS)) == 1


async def test_a_holder_stopped_in_its_fetch_shows_and_posts_nothing_when_it_goes_on(database: Path) -> None:
    sandbox = two_tokens()
    async with sandbox.serving(), frozen_and_followed(sandbox, database, "fetch") as (old, new):
        await until(sandbox, lambda log: len(posts_by(log, NEW)) == len(ITEMS))
        old.thaw()
        await old.says(LEASE_LOST)
        await old.stop()
        await new.stop()
    assert posts_by(sandbox.log) == dict.fromkeys(ITEMS, 1)
    assert [entry.token for entry in sandbox.log.posts()] == [NEW] * 4
    shown = {(entry.text or "").partition("\n")[0] for entry in sandbox.log.calls(channel=STATUS)}
    assert shown == {"Rows: 1 row"}  # what the old holder had fetched are two
    assert await _results(database) >= {'"lease_lost"'}


async def test_a_holder_stopped_between_two_items_posts_none_of_the_rest_when_it_goes_on(database: Path) -> None:
    sandbox = two_tokens()
    async with sandbox.serving(), frozen_and_followed(sandbox, database, "between_items second") as (old, new):
        await until(sandbox, lambda log: len(posts_by(log)) == len(ITEMS))
        old.thaw()
        await old.says(LEASE_LOST)
        await old.stop()
        await new.stop()
    assert (posts_by(sandbox.log, OLD), posts_by(sandbox.log, NEW)) == ({"first": 1}, {"second": 1, "third": 1})
    assert len(sandbox.log.posts(STATUS)) == 1
    assert await _results(database) >= {'"lease_lost"'}


async def test_a_post_sent_after_its_lease_went_is_found_by_the_next_holder_and_not_repeated(database: Path) -> None:
    """Stopped between its last question and the send, for less than its claim lasts: nobody else may post the item."""
    sandbox = two_tokens()
    async with sandbox.serving(), frozen_and_followed(sandbox, database, "before_send second") as (old, new):
        await until(sandbox, lambda log: posts_by(log, NEW)["third"] == 1)
        old.thaw()
        await old.says(POSSIBLE_DUPLICATE)
        await until(sandbox, lambda log: bool(log.calls("conversations.history")))  # by whoever holds the lease then
        await old.stop()
        await new.stop()
    assert (posts_by(sandbox.log, OLD), posts_by(sandbox.log, NEW)) == ({"first": 1, "second": 1}, {"third": 1})
    assert (await _second(database)).possible_duplicates == 1


async def test_a_post_sent_after_its_lease_and_its_claim_went_is_the_only_double_and_counted(database: Path) -> None:
    """Stopped there for longer than the claim lasts, which no client can exclude: its acknowledgement lands nowhere."""
    sandbox = two_tokens()
    async with sandbox.serving(), frozen_and_followed(sandbox, database, "before_send second") as (old, new):
        _let_claims_run_out(database)
        await until(sandbox, lambda log: len(posts_by(log, NEW)) == 2)
        old.thaw()
        await old.says(POSSIBLE_DUPLICATE)
        await old.stop()
        await new.stop()
    assert posts_by(sandbox.log) == {"first": 1, "second": 2, "third": 1}
    by_new = next(entry for entry in sandbox.log.posts(ALERTS) if entry.token == NEW and entry.delivery["attempt"] == 2)
    second = await _second(database)
    assert (second.ts, second.possible_duplicates) == (by_new.ts, 1)


@asynccontextmanager
async def frozen_and_followed(
    sandbox: Sandbox, database: Path, point: str
) -> AsyncIterator[tuple[MirrorProcess, MirrorProcess]]:
    """Yield a lease holder that is stopped at a point, and a second process that waits for its lease to go stale."""
    items = " ".join(ITEMS)
    with mirror_process(sandbox, database, OLD, MIRROR_ITEMS=items, MIRROR_HOLD=point) as old:
        await old.is_held()
        old.freeze()
        with mirror_process(sandbox, database, NEW, MIRROR_ITEMS=items) as new:
            yield old, new


def _let_claims_run_out(database: Path) -> None:
    """Move the end of every claim back by the time that a claim lasts, as if that time had passed."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE kizami_deliveries SET claim_expires_boot = claim_expires_boot - ?", (CLAIM_MS,))


async def _second(database: Path) -> Delivery:
    async with watcher(database).running(worker=False) as app:
        found = await app.store.deliveries.get("mirrored", ALERTS, "second")
    assert found is not None
    assert found.delivered_at is not None
    return found


async def _results(database: Path) -> set[str | None]:
    async with watcher(database).running(worker=False) as app:
        return {job.result for job in (await app.store.jobs.list(JobFilter("mirrored", limit=200))).jobs}
