"""The caller's own connection: which driver made it, and what is refused of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.errors import InvalidInputError, OtherDatabaseError, WrongStateError

if TYPE_CHECKING:
    from kizami.core.errors import KizamiError

SAVEPOINT: Final = "SAVEPOINT kizami_enqueue"
ROLL_BACK: Final = "ROLLBACK TO SAVEPOINT kizami_enqueue"
RELEASE: Final = "RELEASE SAVEPOINT kizami_enqueue"


def is_from(connection: object, package: str) -> bool:
    """Tell whether an object's class, or one that it inherits from, is a package's; it isn't imported for that."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(connection).__mro__)


def driver_connection(connection: object) -> object:
    """Return the driver's connection under one of SQLAlchemy's; any other is one already.

    Begins SQLAlchemy's transaction where it would begin with the next statement. Raises WrongStateError.
    """
    if not is_from(connection, "sqlalchemy"):
        return connection
    from kizami.store.sqlalchemy_callers import driver_under  # noqa: PLC0415 - only for who has SQLAlchemy

    return driver_under(connection)


async def driver_connection_async(connection: object) -> object:
    """Return as `driver_connection` does; SQLAlchemy's connections and sessions of asyncio are awaited."""
    if not is_from(connection, "sqlalchemy"):
        return connection
    from kizami.store.sqlalchemy_callers import driver_under_async  # noqa: PLC0415 - as above

    return await driver_under_async(connection)


def unknown_kind(connection: object, shown: str, wanted: str) -> KizamiError:
    """Return the error for an object that is no connection to such a database."""
    kind = type(connection)
    facts = {"path": "connection"}
    if any(is_from(connection, package) for package in ("sqlite3", "psycopg")):
        return OtherDatabaseError(
            f"The connection is a {kind.__module__}.{kind.__qualname__}, but the app's jobs are in {shown}.",
            remedy=f"Give {wanted} to that database, or leave connection out.",
            **facts,
        )
    return InvalidInputError(
        f"A {kind.__module__}.{kind.__qualname__} is no connection that Kizami can enqueue through.",
        remedy=f"Give {wanted} to {shown}.",
        **facts,
    )


def other_database(shown: str, theirs: str, remedy: str) -> OtherDatabaseError:
    """Return the error for a connection to another database than the app's."""
    return OtherDatabaseError(
        f"The connection is one to {theirs}, but the app's jobs are in {shown}.", remedy=remedy, path="connection"
    )


def no_transaction(shown: str) -> WrongStateError:
    """Return the error for a connection in autocommit mode with no transaction begun."""
    return WrongStateError(
        f"The connection to {shown} is in autocommit mode and has begun no transaction, so the job would be kept"
        " whatever becomes of the rest.",
        remedy="Begin one (psycopg: `connection.transaction()`; SQLite: BEGIN IMMEDIATE), or leave connection out.",
    )
