"""The migrations of a SQLite file as `kizami migrate` shows and applies them; opening the file does so as well."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kizami.store.opening import Migrations, Step
from kizami.store.sqlite.connection import MEMORY, connect, translate
from kizami.store.sqlite.migrate import Migration, migrate, migrations, missing
from kizami.store.sqlite.url import path_of

if TYPE_CHECKING:
    from kizami.runtime import Clock

_BUSY_MS = 5_000


def migrations_at(url: str, clock: Clock) -> Migrations:
    """Return the migrations of the file that a URL names. Raises ConfigurationError."""
    path = path_of(url)
    return Migrations(path, by_itself=True, pending=lambda: _pending(path), apply=lambda: _apply(path, clock))


def _pending(path: str) -> list[Step]:
    if path == MEMORY or not Path(path).exists():
        return [_step(migration) for migration in migrations()]
    with closing(connect(path, busy_ms=_BUSY_MS)) as connection:
        try:
            return [_step(migration) for migration in missing(connection)]
        except sqlite3.Error as error:
            raise translate(error, path) from error


def _apply(path: str, clock: Clock) -> list[Step]:
    with closing(connect(path, busy_ms=_BUSY_MS)) as connection:
        try:
            found = [_step(migration) for migration in missing(connection)]
            migrate(connection, clock.now_ms())
        except sqlite3.Error as error:
            raise translate(error, path) from error
        return found


def _step(migration: Migration) -> Step:
    return Step(migration.number, migration.name, migration.script)
