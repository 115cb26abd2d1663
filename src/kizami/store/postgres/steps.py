"""The migrations of a PostgreSQL database as `kizami migrate` shows and applies them."""

from __future__ import annotations

from kizami.store.opening import Migrations, Step
from kizami.store.postgres.migrate import Migration, complete_sql, migrate, pending
from kizami.store.postgres.place import place_of


def migrations_at(url: str) -> Migrations:
    """Return the migrations of the database that a URL names. Raises ConfigurationError."""
    place = place_of(url)
    return Migrations(
        place.shown,
        by_itself=False,
        pending=lambda: [_step(migration) for migration in pending(place)],
        apply=lambda: [_step(migration) for migration in migrate(place)],
    )


def _step(migration: Migration) -> Step:
    return Step(migration.number, migration.name, complete_sql(migration))
