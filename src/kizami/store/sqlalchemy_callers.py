"""SQLAlchemy's connections and sessions, down to the driver's connection of the transaction that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from kizami.core.errors import InvalidInputError, WrongStateError

if TYPE_CHECKING:
    from kizami.core.errors import KizamiError


def driver_under(connection: object) -> object:
    """Return the driver's connection; the transaction is begun if it isn't. Raises WrongStateError."""
    found = connection() if isinstance(connection, scoped_session) else connection
    try:
        if isinstance(found, Session):
            found = found.connection()
        if isinstance(found, Connection):
            if not found.in_transaction():
                found.begin()
            return found.connection.driver_connection
    except InvalidRequestError as error:
        raise _unusable(error) from error
    if isinstance(found, AsyncConnection | AsyncSession | async_scoped_session):
        raise WrongStateError(
            f"An {type(found).__name__} of SQLAlchemy can only be awaited.",
            remedy="Await enqueue(..., connection=...) on its event loop, or give a synchronous one.",
        )
    raise _no_connection(found)


async def driver_under_async(connection: object) -> object:
    """Return the driver's connection, also under one of asyncio. Raises as `driver_under` does."""
    found: Any = connection() if isinstance(connection, async_scoped_session) else connection
    try:
        if isinstance(found, AsyncSession):
            found = await found.connection()
        if not isinstance(found, AsyncConnection):
            return driver_under(found)
        if not found.in_transaction():
            await found.begin()
        return (await found.get_raw_connection()).driver_connection
    except InvalidRequestError as error:
        raise _unusable(error) from error


def _unusable(error: InvalidRequestError) -> WrongStateError:
    said = str(error).splitlines()[0].rstrip(".")
    return WrongStateError(
        f"SQLAlchemy gives no transaction to enqueue in: {said}.",
        remedy="Begin one, or give the connection of the engine that the app's database belongs to.",
    )


def _no_connection(found: object) -> KizamiError:
    return InvalidInputError(
        f"A {type(found).__name__} of SQLAlchemy has no transaction.",
        remedy="Give a Connection or a Session (engine.connect(), Session(engine)), or one of asyncio.",
        path="connection",
    )
