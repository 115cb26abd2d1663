"""The engine's statements on PostgreSQL go along the same indexes, whatever the tables held when their plan was made.

A plan is kept for the life of a connection, and the statistics behind it are made now and then. So plans are looked at
on empty tables, on tables filled a moment ago, and with statistics; and each without knowing the parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.postgres.session import Errand, Session
from kizami.store.postgres.transaction import PostgresTransaction
from kizami.store.statements import read
from kizami.store.transaction import Moment, Transaction
from tests.postgres_server import fresh_database

PRIMARY = "kizami_jobs_pkey"
LARGE = ("kizami_jobs", "kizami_reservations", "kizami_fires", "kizami_deliveries", "kizami_intents")
"""The tables that grow with the number of jobs, ticks and posts."""

INDEXES = {
    "state_of": {"kizami_jobs_identity"},
    "promote": {"kizami_jobs_waiting", PRIMARY},
    "ready_of_shard": {"kizami_jobs_ready"},
    "active_by_key": {"kizami_jobs_active"},
    "claim": {PRIMARY},
    "block": {PRIMARY},
    "unblock": {"kizami_jobs_blocked", PRIMARY},
    "any_blocked": {"kizami_jobs_blocked"},
    "held": {PRIMARY},
    "end": {PRIMARY},
    "again": {PRIMARY},
    "alive": {PRIMARY},
    "start": {PRIMARY},
    "complete_first_try": {PRIMARY},
    "by_identity": {"kizami_jobs_identity"},
    "to_rekey": {"kizami_jobs_created", PRIMARY},
    "rekey": {PRIMARY},
    "sweep_done": {"kizami_jobs_done", PRIMARY},
    "sweep_broken": {"kizami_jobs_broken", PRIMARY},
    "sweep_reservations": {"kizami_reservations_until"},
    "sweep_fires": {"kizami_fires_schedule", "kizami_fires_pkey"},
    "sweep_delivered": {"kizami_deliveries_in_state", "kizami_deliveries_pkey"},
    "sweep_intents": {"kizami_intents_settled"},
    "forget_intents": {"kizami_intents_pkey"},
}
FILL = """
INSERT INTO kizami_bindings (app, name, shards, requires_concurrency_key, requires_unique_key, policy, completed_ms,
  failed_ms, declared_at)
VALUES ('shop', 'send', 2, 0, 0, '{}', 0, 0, 0);
INSERT INTO kizami_shards (app, binding, shard) VALUES ('shop', 'send', 0), ('shop', 'send', 1);
INSERT INTO kizami_jobs (key, shard_key, local_id, state, pile, priority, rank, order_key, due_at, first_due_at,
  attempts_allowed, max_attempts, guarantee, timeout_ms, worker_id, payload)
SELECT n, 1 + n % 5 / 4, 'job' || n, state, pile, 0, 0, n, n, n, 3, 3, 'at-least-once', 60000,
  CASE state WHEN 'QUEUED' THEN 'w' END, '{}'
FROM generate_series(1, 20000) AS numbers (n), LATERAL (
  SELECT (ARRAY['SCHEDULED', 'SCHEDULED', 'QUEUED', 'COMPLETED'])[1 + n % 4] AS state,
    (ARRAY['ready', 'waiting', NULL, NULL])[1 + n % 4] AS pile
) AS kinds;
INSERT INTO kizami_fires (app, schedule, kind, outcome, planned_at, planned_last_at, count, acted_at, by, version)
SELECT 'shop', 'report' || n % 5, 'planned', 'fired', n, n, 1, n, 'w', 1 FROM generate_series(1, 20000) AS numbers (n);
INSERT INTO kizami_deliveries (app, channel, item, content, due, created_at, delivered_at, ts)
SELECT 'shop', 'C' || n % 3, 'item' || n, '{}', '2026-05-28', n, n, '1.1' FROM generate_series(1, 20000) AS numbers (n);
INSERT INTO kizami_intents (app, kind, channel, item, attempt, attempted_at, settled_at)
SELECT 'shop', 'delivery', 'C' || n % 3, 'item' || n, 1, n, n FROM generate_series(1, 20000) AS numbers (n);
"""


@pytest.fixture(scope="module")
def in_turn(postgres_server: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Give the plans of each statement at each state of the tables."""
    with fresh_database(postgres_server) as url:
        migrate(place_of(url))
        seen = {"empty": plans(url)}
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL)
            seen["filled"] = plans(url)
            connection.execute("ANALYZE")
        seen["analyzed"] = plans(url)
        yield seen


def plans(url: str) -> dict[str, Any]:
    """Return the plans that the engine's transactions make."""
    session = Session(place_of(url))

    def operation(transaction: Transaction, _: Moment) -> dict[str, Any]:
        assert isinstance(transaction, PostgresTransaction)
        texts = {**read("kizami.store.postgres", "jobs"), **read("kizami.store.postgres", "housekeeping")}
        return {name: plan_of(transaction, texts[name]) for name in INDEXES}

    try:
        return session.run(operation, Errand.WRITE)
    finally:
        session.close()


def plan_of(transaction: PostgresTransaction, text: str) -> Any:
    """Return the plan of a statement for whatever parameters."""
    names = list(dict.fromkeys(re.findall(r"(?<!:):([a-z]\w*)", re.sub(r"--.*", "", text))))
    numbered = re.sub(r"(?<!:):([a-z]\w*)", lambda found: f"${names.index(found.group(1)) + 1}", text)
    run = transaction.connection.execute
    run("SET LOCAL plan_cache_mode = force_generic_plan", prepare=False)
    run(f"PREPARE looked AS {numbered}", prepare=False)
    nothing = sql.SQL(", ").join([sql.NULL] * len(names))
    explained = run(sql.SQL("EXPLAIN (FORMAT JSON) EXECUTE looked ({})").format(nothing), prepare=False).fetchone()
    run("DEALLOCATE looked", prepare=False)
    return json.loads(json.dumps(explained[0]))  # type: ignore[index]  # EXPLAIN has one row


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan."""
    for node in plan if isinstance(plan, list) else [plan]:
        inner = node.get("Plan", node)
        yield inner
        yield from nodes(inner.get("Plans", []))


@pytest.mark.parametrize("state", ["empty", "filled", "analyzed"])
@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_goes_along_its_indexes(in_turn: dict[str, dict[str, Any]], name: str, state: str) -> None:
    """B073: a claim once read every ready job, since its plan was made when there were none."""
    scans = [node for node in nodes(in_turn[state][name]) if node["Node Type"].endswith("Scan")]
    scans = [node for node in scans if node.get("Relation Name") in LARGE]
    assert {node["Index Name"] for node in scans if "Index Name" in node} <= INDEXES[name]
    assert scans
    assert all("Index Cond" in node or "TID Cond" in node for node in scans), "a whole table or index is read"
