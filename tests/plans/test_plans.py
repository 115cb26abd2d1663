"""What the hot statements cost: each finds its rows by an index, and a claim is as many statements for any backlog."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kizami.store.protocol import Store
from kizami.store.sqlite.connection import MEMORY, connect
from kizami.store.sqlite.database import Moment
from kizami.store.sqlite.migrate import migrate
from kizami.store.sqlite.statements import load
from kizami.store.sqlite.store import SqliteStore
from tests.conformance.whole_store import StillClock, completed, employ, new_job, take, whole_store

INDEXES = {
    ("jobs", "promote"): "kizami_jobs_waiting",
    ("jobs", "next_due"): "kizami_jobs_waiting",
    ("jobs", "next_ready_shard"): "kizami_jobs_ready",
    ("jobs", "ready_of_shard"): "kizami_jobs_ready",
    ("jobs", "claim"): "INTEGER PRIMARY KEY",
    ("jobs", "held"): "INTEGER PRIMARY KEY",
    ("jobs", "end"): "INTEGER PRIMARY KEY",
    ("jobs", "again"): "INTEGER PRIMARY KEY",
    ("jobs", "alive"): "INTEGER PRIMARY KEY",
    ("jobs", "landed_already"): "INTEGER PRIMARY KEY",
    ("jobs", "by_identity"): "sqlite_autoindex_kizami_jobs_1",
    ("jobs", "active"): "kizami_jobs_active",
    ("jobs", "active_of_worker"): "kizami_jobs_active",
    ("jobs", "purge"): "kizami_jobs_ended",
    ("schedules", "due"): "kizami_schedules_due",
    ("schedules", "next_planned"): "kizami_schedules_due",
    ("schedules", "recorded"): "kizami_fires_once",
    ("schedules", "ledger"): "kizami_fires_app",
    ("schedules", "ledger_of_schedule"): "kizami_fires_schedule",
    ("deliveries", "owed"): "kizami_deliveries_owed",
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


@pytest.mark.parametrize(("area", "name"), INDEXES, ids=[f"{area}.{name}" for area, name in INDEXES])
def test_a_hot_statement_uses_its_index_and_sorts_nothing(empty: sqlite3.Connection, area: str, name: str) -> None:
    """B073: no full scan, whatever the number of rows."""
    plan = [row["detail"] for row in empty.execute(f"EXPLAIN QUERY PLAN {load(area)[name]}", Anything())]
    assert any(INDEXES[area, name] in step for step in plan)
    costly = [step for step in plan if step.startswith("SCAN") and not step.startswith("SCAN json_each")]
    assert costly == []
    assert [step for step in plan if "TEMP B-TREE" in step] == []


async def statements_of_a_claim(store: SqliteStore) -> list[str]:
    """Return what SQLite runs during one claim of ten jobs."""
    seen: list[str] = []

    def trace(connection: sqlite3.Connection, _: Moment) -> None:
        connection.set_trace_callback(seen.append)

    def stop(connection: sqlite3.Connection, _: Moment) -> None:
        connection.set_trace_callback(None)

    await store._database.write(trace)  # noqa: SLF001 - the writer's own connection is what is measured
    await take(store)
    await store._database.write(stop)  # noqa: SLF001 - as above
    return seen


async def test_a_claim_costs_as_many_statements_whatever_is_waiting(tmp_path: Path) -> None:
    """B073: neither waiting, ready nor ended jobs make a claim longer."""
    async with whole_store(tmp_path, StillClock()) as store:
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
