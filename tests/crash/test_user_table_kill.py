"""Real processes on a user's table in PostgreSQL, ended by SIGKILL in each phase of a post."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from kizami.sandbox.server import Sandbox
from tests.crash.processes import ROOT, until
from tests.crash.user_table_app import CHANNEL
from tests.postgres_server import for_sqlalchemy

ROWS = 8
PHASES = ("between_items", "before_send", "answered", "answered")
TABLE = """
    CREATE TABLE orders (id integer PRIMARY KEY, name text, slack_ts text, claim_token text, claim_expires bigint)
"""


@contextmanager
def _worker(folder: Path, table_url: str, slack_url: str, phase: str) -> Iterator[subprocess.Popen[str]]:
    """Run a worker process; it is killed at the end."""
    python_path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    with (folder / "log").open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.user_table_app", str(folder / "kizami.db"), table_url, phase],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path, "SLACK_API_URL": slack_url},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.timeout(240)
async def test_kills_in_each_phase_lose_and_double_no_row(tmp_path: Path, postgres_url: str) -> None:
    """B076: what each dead process left in the two databases is understood by the next one."""
    slack = Sandbox()
    with psycopg.connect(postgres_url, autocommit=True) as shop:
        shop.execute(TABLE)
        shop.execute("INSERT INTO orders SELECT n, 'order ' || n FROM generate_series(1, %s) AS n", (ROWS,))
        async with slack.serving() as slack_url:
            for phase in PHASES:
                with _worker(tmp_path, for_sqlalchemy(postgres_url), slack_url, phase) as process:
                    assert process.stdout is not None
                    assert await asyncio.to_thread(process.stdout.readline) == f"{phase}\n"
                shop.execute("UPDATE orders SET claim_expires = 0")  # as after five minutes

            async def all_marked() -> bool:
                left = shop.execute("SELECT count(*) FROM orders WHERE slack_ts IS NULL").fetchone()
                return left == (0,)

            with _worker(tmp_path, for_sqlalchemy(postgres_url), slack_url, "none"):
                await until(all_marked, "every row is marked")
        posts = {post.text: post.ts for post in slack.log.posts(CHANNEL)}
        marked = shop.execute("SELECT 'name: ' || name, slack_ts FROM orders").fetchall()
    assert len(slack.log.posts(CHANNEL)) == ROWS
    assert posts == dict(marked)
