"""Numbered, forward-only migrations of a PostgreSQL database. It doesn't migrate by itself: `kizami migrate` does.

A migration's first line may say `-- serves from: N`: code that knows migrations up to N goes on working after it. So
old and new processes share the database during a rolling deploy: first migrate, then start the new code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import psycopg

from kizami.core.errors import StoreVersionError
from kizami.store.postgres.connection import Connection, connect
from kizami.store.postgres.faults import MIGRATE, translate

if TYPE_CHECKING:
    from kizami.store.postgres.place import Place

_SERVES: Final = re.compile(r"-- serves from: (\d+)\n")
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('kizami_migrations', 0))"
_LIMITS: Final = "SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '0', true)"
_RECORD: Final = "INSERT INTO kizami_migrations (number, name, checksum, serves_from) VALUES (%s, %s, %s, %s)"
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS kizami_migrations (
  number      bigint PRIMARY KEY,
  name        text NOT NULL,
  checksum    text NOT NULL,
  serves_from bigint NOT NULL,
  applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of DDL; `serves_from` is the oldest code that works after it."""

    number: int
    name: str
    script: str
    serves_from: int

    @property
    def checksum(self) -> str:
        """Return what tells an edited migration from the one that was applied."""
        return sha256(self.script.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Applied:
    name: str
    checksum: str
    serves_from: int


def migrations() -> tuple[Migration, ...]:
    """Return all migrations that this code knows, in order."""
    folder = files("kizami.store.postgres") / "migrations"
    found = [_read(entry.name, entry.read_text(encoding="utf-8")) for entry in folder.iterdir()]
    return tuple(sorted(found, key=lambda migration: migration.number))


def _read(filename: str, script: str) -> Migration:
    number = int(filename[:4])
    serves = _SERVES.match(script)
    return Migration(number, filename[5:-4], script, int(serves.group(1)) if serves else number)


def require_current(place: Place) -> None:
    """Raise StoreVersionError unless the schema is one that this code works with; raise StoreError and its kinds."""
    connection = connect(place)
    try:
        missing = _missing(migrations(), _applied(connection), place)
    except psycopg.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()
    if missing:
        names = ", ".join(f"{migration.number} ({migration.name})" for migration in missing)
        raise StoreVersionError(
            f"The database {place.shown} lacks the migration {names}.", remedy=MIGRATE, place=place.shown
        )


def pending(place: Place) -> tuple[Migration, ...]:
    """Return what `migrate` would apply. Raises StoreError and its kinds."""
    connection = connect(place)
    try:
        return _missing(migrations(), _applied(connection), place)
    except psycopg.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()


def migrate(place: Place) -> tuple[Migration, ...]:
    """Apply what is missing, each migration with its record in one transaction; return what was applied.

    Two that migrate at once take turns. A lock that isn't had within five seconds ends it, so that nobody who works
    waits behind it; what was applied before stays. Raises StoreError and its kinds.
    """
    connection = connect(place)
    done: list[Migration] = []
    try:
        while (applied := _apply_next(connection, place)) is not None:
            done.append(applied)
    except psycopg.Error as error:
        raise translate(error, place) from error
    finally:
        connection.close()
    return tuple(done)


def complete_sql(migration: Migration) -> str:
    """Return the SQL that applies a migration and records it, for people who apply it by hand."""
    values = (migration.number, migration.name, migration.checksum, migration.serves_from)
    return "\n".join(
        (
            "BEGIN;",
            f"{_LOCK};",
            f"{_TABLE.strip()};",
            migration.script.strip(),
            _RECORD.replace("%s, %s, %s, %s", "{}, '{}', '{}', {}").format(*values) + ";",
            "COMMIT;",
        )
    )


def _apply_next(connection: Connection, place: Place) -> Migration | None:
    with connection.transaction():
        connection.execute(_LOCK)
        connection.execute(_LIMITS)
        missing = _missing(migrations(), _applied(connection), place)
        if not missing:
            return None
        following = missing[0]
        connection.execute(_TABLE)
        connection.execute(following.script.encode(), prepare=False)
        facts = (following.number, following.name, following.checksum, following.serves_from)
        connection.execute(_RECORD, facts)
        return following


def _applied(connection: Connection) -> dict[int, _Applied]:
    there = connection.execute("SELECT to_regclass('kizami_migrations') IS NOT NULL AS there").fetchone()
    if there is None or not there["there"]:
        return {}
    rows = connection.execute("SELECT number, name, checksum, serves_from FROM kizami_migrations")
    return {row["number"]: _Applied(row["name"], row["checksum"], row["serves_from"]) for row in rows}


def _missing(known: tuple[Migration, ...], applied: dict[int, _Applied], place: Place) -> tuple[Migration, ...]:
    for migration in known:
        found = applied.get(migration.number)
        if found is not None and (found.name, found.checksum) != (migration.name, migration.checksum):
            raise StoreVersionError(
                f"The database {place.shown} has a migration {migration.number} {found.name!r} that differs from"
                f" {migration.name!r} here.",
                remedy="It belongs to another version of Kizami: use that one, or point KIZAMI_DATABASE_URL elsewhere.",
                place=place.shown,
            )
    newest = known[-1].number
    too_new = [number for number, found in applied.items() if found.serves_from > newest]
    if too_new:
        raise StoreVersionError(
            f"The database {place.shown} has migration {max(too_new)}, which this version of Kizami can't work with.",
            remedy="Update Kizami in this process.",
            place=place.shown,
        )
    return tuple(migration for migration in known if migration.number not in applied)
