"""What the hot statements cost: each finds its rows by an index, and a claim is as many statements for any backlog."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kizami.core.states import JobState
from kizami.store.protocol import JobFilter, JobSort, Store
from kizami.store.rooms import deliveries, job_search
from kizami.store.sqlite.connection import MEMORY, connect
from kizami.store.sqlite.migrate import migrate
from kizami.store.sqlite.store import SqliteStore
from kizami.store.sqlite.transaction import DIALECT
from kizami.store.statements import Statement
from kizami.store.transaction import Moment, Transaction
from tests.conformance.whole_store import APP, StillClock, completed, employ, new_job, raw, sqlite_store, take

INDEXES = {
    ("jobs", "home"): "sqlite_autoindex_kizami_shards_1",
    ("jobs", "state_of"): "kizami_jobs_identity",
    ("jobs", "promote"): "kizami_jobs_waiting",
    ("jobs", "shards_with_work"): "kizami_jobs_waiting",
    ("jobs", "ready_of_shard"): "kizami_jobs_ready",
    ("jobs", "active_by_key"): "kizami_jobs_active",
    ("jobs", "claim"): "INTEGER PRIMARY KEY",
    ("jobs", "block"): "INTEGER PRIMARY KEY",
    ("jobs", "unblock"): "kizami_jobs_blocked",
    ("jobs", "to_rekey"): "kizami_jobs_created",
    ("jobs", "held"): "INTEGER PRIMARY KEY",
    ("jobs", "end"): "INTEGER PRIMARY KEY",
    ("jobs", "again"): "INTEGER PRIMARY KEY",
    ("jobs", "alive"): "INTEGER PRIMARY KEY",
    ("jobs", "landed_already"): "INTEGER PRIMARY KEY",
    ("jobs", "by_identity"): "kizami_jobs_identity",
    ("jobs", "by_keys"): "INTEGER PRIMARY KEY",
    ("jobs", "active_of_app"): "kizami_jobs_active",
    ("jobs", "sweep_done"): "kizami_jobs_done",
    ("jobs", "sweep_broken"): "kizami_jobs_broken",
    ("jobs", "sweep_reservations"): "kizami_reservations_until",
    ("bindings", "first_ready"): "kizami_jobs_ready",
    ("bindings", "first_due"): "kizami_jobs_waiting",
    ("schedules", "due"): "kizami_schedules_due",
    ("schedules", "next_planned"): "kizami_schedules_due",
    ("schedules", "recorded"): "kizami_fires_once",
    ("schedules", "ledger"): "kizami_fires_app",
    ("schedules", "ledger_of_schedule"): "kizami_fires_schedule",
    ("deliveries", "owed"): "kizami_deliveries_owed",
    ("deliveries", "free_of"): "kizami_deliveries_claimed",
    ("boards", "free_of"): "kizami_boards_claimed",
    ("housekeeping", "schedules_after"): "PRIMARY KEY",
    ("housekeeping", "sweep_fires"): "kizami_fires_schedule",
    ("housekeeping", "sweep_delivered"): "kizami_deliveries_in_state",
    ("housekeeping", "sweep_intents"): "kizami_intents_settled",
    ("housekeeping", "forget_intents"): "PRIMARY KEY",
    ("deliveries", "known"): "sqlite_autoindex_kizami_deliveries_1",
}


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    with closing(connect(MEMORY, busy_ms=0)) as connection:
        migrate(connection, 0)
        yield connection


class Anything(dict[str, int]):
    """Whatever parameter a statement asks for; its value doesn't change the plan."""

    def __missing__(self, name: str) -> int:
        return 1


def plan_of(connection: sqlite3.Connection, sql: str) -> list[str]:
    numbered = sql.count("?")
    values = (1,) * (max(map(int, re.findall(r"[?](\d+)", sql)), default=numbered)) if numbered else Anything()
    return [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def is_costly(step: str) -> bool:
    scan = step.startswith("SCAN") and "VIRTUAL TABLE" not in step
    return scan or "TEMP B-TREE" in step


@pytest.mark.parametrize(("area", "name"), INDEXES, ids=[f"{area}.{name}" for area, name in INDEXES])
def test_a_hot_statement_uses_its_index_and_sorts_nothing(empty: sqlite3.Connection, area: str, name: str) -> None:
    """B073: no full scan, whatever the number of rows."""
    plan = plan_of(empty, DIALECT[Statement(area, name)])
    assert any(INDEXES[area, name] in step for step in plan)
    assert [step for step in plan if is_costly(step)] == []


CREATED, ENDED, DUE = JobSort
RARE, COMMON = (10, 1_000_000), (900_000, 1_000_000)
LISTS = {
    "all": (JobFilter(APP), COMMON, {"kizami_jobs_created"}),
    "common state": (JobFilter(APP, (JobState.COMPLETED,)), COMMON, {"kizami_jobs_created"}),
    "rare state": (JobFilter(APP, (JobState.FAILED,)), RARE, {"kizami_jobs_broken"}),
    "unique key": (JobFilter(APP, unique_key="k"), COMMON, {"kizami_jobs_unique"}),
    "concurrency key": (JobFilter(APP, concurrency_key="k"), COMMON, {"kizami_jobs_keyed"}),
    "schedule": (JobFilter(APP, schedule="s"), COMMON, {"kizami_jobs_schedule"}),
    "one job": (JobFilter(APP, job_id="send#0:a"), COMMON, {"kizami_jobs_identity"}),
    "ended": (JobFilter(APP, sort=ENDED, before="5.5"), COMMON, {"kizami_jobs_done", "kizami_jobs_broken"}),
    "due": (JobFilter(APP, sort=DUE, before="5.5", oldest_first=True), COMMON, {"kizami_jobs_waiting"}),
    "created range": (JobFilter(APP, created_from=1, created_to=9, before="5"), COMMON, {"kizami_jobs_created"}),
}


@pytest.mark.parametrize("case", LISTS)
def test_a_list_walks_the_index_of_its_filter_and_sorts_only_a_rare_state(empty: sqlite3.Connection, case: str) -> None:
    """B073: no page reads more rows than it shows, except those of a state that has few."""
    wanted, (matching, total), expected = LISTS[case]
    indexes = job_search.indexes_for(wanted, matching, total)
    assert set(indexes) == expected
    for index in indexes:
        plan = plan_of(empty, DIALECT.text(Statement("jobs", "walk"), job_search.walk(index, 1, wanted)[0]))
        assert any(index in step and step.startswith("SEARCH") for step in plan)
        assert [step for step in plan if is_costly(step)] == [] or case == "rare state"


async def statements_of_a_claim(store: SqliteStore) -> list[str]:
    """Return what SQLite runs during one claim of ten jobs."""
    seen: list[str] = []

    def trace(transaction: Transaction, _: Moment) -> None:
        raw(transaction).set_trace_callback(seen.append)

    def stop(transaction: Transaction, _: Moment) -> None:
        raw(transaction).set_trace_callback(None)

    await store._database.write(trace)  # noqa: SLF001 - the writer's own connection is what is measured
    await take(store)
    await store._database.write(stop)  # noqa: SLF001 - as above
    return seen


async def test_a_claim_costs_as_many_statements_whatever_is_waiting(tmp_path: Path) -> None:
    """B073: neither waiting, ready nor ended jobs make a claim longer."""
    async with sqlite_store(tmp_path, StillClock()) as store:
        await employ(store, "w1")
        await store.jobs.enqueue([new_job(f"few{number}") for number in range(10)])
        few = await statements_of_a_claim(store)
        await fill(store)
        many = await statements_of_a_claim(store)
    assert len(few) == len(many)
    assert len(few) < 15


async def fill(store: Store) -> None:
    await store.jobs.enqueue([new_job(f"ended{number}") for number in range(500)])
    await store.jobs.report([completed(job) for job in await take(store, limit=500)])
    await store.jobs.enqueue([new_job(f"ready{number}") for number in range(2_000)])
    await store.jobs.enqueue([new_job(f"later{number}", delay_ms=1_000) for number in range(2_000)])


@pytest.mark.parametrize("state", ["owed", "delivered", "set_aside", None])
@pytest.mark.parametrize("channel", ["C1", None])
def test_a_list_of_deliveries_walks_an_index_and_sorts_nothing(
    empty: sqlite3.Connection, channel: str | None, state: str | None
) -> None:
    statement, where = deliveries.statement_of(channel, state)
    plan = plan_of(empty, DIALECT.text(statement, {"where": where}))
    assert any("USING INDEX kizami_deliveries_" in step for step in plan)
    assert [step for step in plan if is_costly(step)] == []
