"""Somebody else's database: an engine for its URL, or a sentence that says why there is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from kizami.core.errors import ConfigurationError, DefinitionError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_SHOWN_MAX: Final = 200


def engine_of(owner: str, database: object) -> Engine:
    """Return the engine of a URL as text, or the engine that was given.

    Raises ConfigurationError for a URL that can't be used, DefinitionError for what is neither.
    """
    if isinstance(database, Engine):
        return database
    if not isinstance(database, str):
        kind = type(database).__name__
        remedy = "Give a sync Engine, or a URL with a sync driver: it is used in threads."
        message = f"{owner}: database is of type {kind}, neither a URL nor a sync Engine."
        raise DefinitionError(message, remedy=remedy, field="database")
    try:
        url = make_url(database)
    except (ArgumentError, ValueError) as error:
        remedy = "Write it as postgresql+psycopg://host/name or sqlite:///file.db."
        raise ConfigurationError(f"{owner}: its database is not a SQLAlchemy URL.", remedy=remedy) from error
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        message = f"{owner}: a SQLite database in memory is empty again for each use."
        raise ConfigurationError(message, remedy="Name a file, as in sqlite:///file.db.")
    engine = engine_for(url)
    if engine.dialect.is_async:
        message = f"{owner}: {url.drivername} is a driver for asyncio."
        raise ConfigurationError(message, remedy="Name a sync one, such as postgresql+psycopg: it is used in threads.")
    return engine


def engine_for(url: URL) -> Engine:
    """Return an engine that connects anew for each use. Raises ConfigurationError for a URL that can't be used."""
    try:
        # No pool: uses are far apart, and a connection that broke meanwhile is nobody's loss.
        return create_engine(url, poolclass=NullPool)
    except NoSuchModuleError as error:
        remedy = "Use one that SQLAlchemy knows, as in postgresql+psycopg, or install its dialect."
        raise ConfigurationError(
            f"SQLAlchemy doesn't know databases of kind {url.drivername}.", remedy=remedy
        ) from error
    except ModuleNotFoundError as error:
        remedy = f"Install {error.name}, or name another driver in the URL."
        message = f"The driver of {url.drivername} isn't installed: there is no module {error.name}."
        raise ConfigurationError(message, remedy=remedy) from error
    except ImportError as error:
        remedy = "Install it with what it needs (for psycopg, psycopg[binary])."
        raise ConfigurationError(
            f"The driver of {url.drivername} can't be loaded: {reason_of(error)}.", remedy=remedy
        ) from error
    except (ArgumentError, TypeError, ValueError) as error:
        remedy = "Correct its options; SQLAlchemy's page of that database lists them."
        raise ConfigurationError(f"The database URL can't be used: {reason_of(error)}.", remedy=remedy) from error


def require_file(url: URL) -> None:
    """Raise ConfigurationError when a SQLite file isn't there: connecting would make an empty one."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith(("file:", ":memory:")):
        return
    if not os.path.isfile(url.database):  # noqa: PTH113 - says no, and raises nothing, for what can't be a path at all
        remedy = "Check the path; three slashes make it relative to this folder, four absolute."
        raise ConfigurationError(f"There is no SQLite file {url.database[:_SHOWN_MAX]}.", remedy=remedy)


def reason_of(error: Exception) -> str:
    """Return the first line of what the database itself said, without its full stop."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    lines = str(said).strip().splitlines()
    return (lines[0] if lines else type(said).__name__).rstrip(".")
