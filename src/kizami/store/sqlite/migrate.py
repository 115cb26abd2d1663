"""Numbered, forward-only migrations of a SQLite file; it migrates itself, also when two processes start at once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from kizami.core.errors import StoreVersionError

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS kizami_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of DDL."""

    number: int
    name: str
    script: str


def migrations() -> tuple[Migration, ...]:
    """Return all migrations that this code knows, in order."""
    folder = files("kizami.store.sqlite") / "migrations"
    found = [
        Migration(int(entry.name[:4]), entry.name[5:-4], entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def migrate(connection: sqlite3.Connection, now_ms: int) -> None:
    """Apply what is missing, each migration with its record in one transaction.

    Numbers that this code doesn't know are a newer release's: each migration keeps the release before it working, so
    that old and new processes share the file during a rolling deploy. Raises sqlite3.Error; StoreVersionError for a
    file of another history.
    """
    if not missing(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_TABLE)
        for migration in missing(connection):
            _apply(connection, migration, now_ms)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def missing(connection: sqlite3.Connection) -> list[Migration]:
    """Return the migrations that a file lacks. Raises as `migrate` does."""
    return _missing(migrations(), _applied(connection))


def _apply(connection: sqlite3.Connection, migration: Migration, now_ms: int) -> None:
    for statement in _statements(migration.script):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO kizami_migrations (number, name, applied_at) VALUES (?, ?, ?)",
        (migration.number, migration.name, now_ms),
    )


def _applied(connection: sqlite3.Connection) -> dict[int, str]:
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'kizami_migrations'").fetchone()
    if there is None:
        return {}
    return {row["number"]: row["name"] for row in connection.execute("SELECT number, name FROM kizami_migrations")}


def _missing(known: tuple[Migration, ...], applied: dict[int, str]) -> list[Migration]:
    for migration in known:
        name = applied.get(migration.number, migration.name)
        if name != migration.name:
            raise StoreVersionError(
                f"The database has a migration {migration.number} {name!r}, which is {migration.name!r} here.",
                remedy="It belongs to another version of Kizami: use that one, or point KIZAMI_DATABASE_URL elsewhere.",
            )
    return [migration for migration in known if migration.number not in applied]


def _statements(script: str) -> list[str]:
    """Split a script at its semicolons, as SQLite itself sees them (executescript would commit in between)."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return [statement for statement in statements if statement.strip()]
