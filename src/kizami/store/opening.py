"""Which store a database URL names, and its migrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kizami.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.runtime import Runtime
    from kizami.store.protocol import Store

_POSTGRES: Final = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Step:
    """One migration: what `kizami migrate` shows of it, and the SQL that applies and records it."""

    number: int
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations of a database. `by_itself` tells that it migrates whenever a process opens it."""

    shown: str
    by_itself: bool
    pending: Callable[[], Sequence[Step]]
    apply: Callable[[], Sequence[Step]]


def store_at(url: str, runtime: Runtime) -> Store:
    """Return the store that a database URL names, not yet open. Raises ConfigurationError."""
    if _is_postgres(url):
        try:
            from kizami.store.postgres.place import place_of  # noqa: PLC0415 - most programs need one store's driver
            from kizami.store.postgres.store import PostgresStore  # noqa: PLC0415 - as above
        except ImportError as error:
            raise _without_driver(error) from error
        return PostgresStore(place_of(url))
    from kizami.store.sqlite.store import SqliteStore  # noqa: PLC0415 - as above
    from kizami.store.sqlite.url import path_of  # noqa: PLC0415 - as above

    return SqliteStore(path_of(url), runtime)


def migrations_of(url: str, runtime: Runtime) -> Migrations:
    """Return the migrations of the database that a URL names. Raises ConfigurationError."""
    if _is_postgres(url):
        try:
            from kizami.store.postgres.steps import migrations_at as postgres_migrations  # noqa: PLC0415 - as above
        except ImportError as error:
            raise _without_driver(error) from error
        return postgres_migrations(url)
    from kizami.store.sqlite.steps import migrations_at as sqlite_migrations  # noqa: PLC0415 - as above

    return sqlite_migrations(url, runtime.clock)


def _is_postgres(url: object) -> bool:
    """Tell which of the two it is; what is neither, the reader of SQLite's URLs refuses."""
    return isinstance(url, str) and url.partition("://")[0].lower() in _POSTGRES


def _without_driver(error: ImportError) -> ConfigurationError:
    return ConfigurationError(
        f"PostgreSQL needs psycopg, which can't be loaded here: {str(error).splitlines()[0]}.",
        remedy="Install kizami[postgres].",
    )
