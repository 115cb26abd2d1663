"""A PostgreSQL database whose clock the tests move: its one function of time reads a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of

_MOVED_BY_HAND = """
CREATE TABLE test_clock (now bigint NOT NULL);
INSERT INTO test_clock VALUES (0);
CREATE OR REPLACE FUNCTION kizami_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT now FROM test_clock';
"""
_ADDRESS = "postgres.url"


def furnish(url: str) -> None:
    """Migrate an empty database and take its clock away."""
    migrate(place_of(url))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_MOVED_BY_HAND)


def clear(url: str) -> None:
    """Remove every row that a test left."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'kizami\\_%'"
            " AND tablename NOT IN ('kizami_migrations', 'kizami_identity')"
        ).fetchall()
        connection.execute("SET session_replication_role = replica")  # no triggers: there is nothing to keep in step
        for (name,) in tables:
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))


def settle_in(folder: Path, url: str) -> None:
    """Make a folder stand for a PostgreSQL database: who opens the store of the folder gets that one."""
    (folder / _ADDRESS).write_text(url)


def address_of(folder: Path) -> str | None:
    """Return the URL of the PostgreSQL that a folder stands for, or None: then it holds a SQLite file."""
    found = folder / _ADDRESS
    return found.read_text() if found.exists() else None


@contextmanager
def clock_of(url: str) -> Iterator[Callable[[int], None]]:
    """Give what sets the database's clock."""
    with psycopg.connect(url, autocommit=True) as connection:

        def show(now: int) -> None:
            connection.execute("UPDATE test_clock SET now = %s", (now,))

        yield show
