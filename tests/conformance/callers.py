"""Connections of users' own, of every kind, to the database of a folder."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from tests.conformance.postgres_home import address_of


@dataclass(frozen=True)
class Caller:
    """A connection or session, and how its owner ends the transaction."""

    connection: Any
    commit: Callable[[], Awaitable[None]]
    roll_back: Callable[[], Awaitable[None]]


def _awaited(call: Callable[[], object]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        call()

    return run


def _sync(connection: Any) -> Caller:
    return Caller(connection, _awaited(connection.commit), _awaited(connection.rollback))


def _async(connection: Any) -> Caller:
    return Caller(connection, connection.commit, connection.rollback)


@asynccontextmanager
async def _sqlite3(folder: Path, *, any_thread: bool = False) -> AsyncIterator[Caller]:
    with closing(sqlite3.connect(folder / "kizami.db", check_same_thread=not any_thread)) as connection:
        yield _sync(connection)


@asynccontextmanager
async def _psycopg(folder: Path) -> AsyncIterator[Caller]:
    with psycopg.connect(str(address_of(folder))) as connection:
        yield _sync(connection)


@asynccontextmanager
async def _psycopg_async(folder: Path) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(str(address_of(folder))) as connection:
        yield _async(connection)


def _engine_url(folder: Path) -> str:
    address = address_of(folder)
    return f"sqlite:///{folder / 'kizami.db'}" if address is None else "postgresql+psycopg://"


def _arguments(folder: Path) -> dict[str, Any]:
    address = address_of(folder)
    return {} if address is None else {"creator": lambda: psycopg.connect(address)}


@asynccontextmanager
async def _alchemy(folder: Path) -> AsyncIterator[Caller]:
    engine = create_engine(_engine_url(folder), poolclass=NullPool, **_arguments(folder))
    with engine.connect() as connection:
        yield _sync(connection)


@asynccontextmanager
async def _session(folder: Path) -> AsyncIterator[Caller]:
    engine = create_engine(_engine_url(folder), poolclass=NullPool, **_arguments(folder))
    with Session(engine) as session:
        yield _sync(session)


@asynccontextmanager
async def _scoped(folder: Path) -> AsyncIterator[Caller]:
    engine = create_engine(_engine_url(folder), poolclass=NullPool, **_arguments(folder))
    session = scoped_session(sessionmaker(engine))
    yield _sync(session)
    session.remove()


def _async_engine(folder: Path) -> Any:
    async def connect() -> Any:
        return await psycopg.AsyncConnection.connect(str(address_of(folder)))

    return create_async_engine("postgresql+psycopg://", poolclass=NullPool, async_creator=connect)


@asynccontextmanager
async def _alchemy_async(folder: Path) -> AsyncIterator[Caller]:
    async with _async_engine(folder).connect() as connection:
        yield _async(connection)


@asynccontextmanager
async def _session_async(folder: Path) -> AsyncIterator[Caller]:
    async with AsyncSession(_async_engine(folder)) as session:
        yield _async(session)


Opened = Callable[[Path], AbstractAsyncContextManager[Caller]]
EVERYWHERE: dict[str, Opened] = {"alchemy": _alchemy, "session": _session, "scoped": _scoped}
OF_SQLITE: dict[str, Opened] = {"sqlite3": _sqlite3, **EVERYWHERE}
OF_POSTGRES: dict[str, Opened] = {
    "psycopg": _psycopg,
    "psycopg_async": _psycopg_async,
    **EVERYWHERE,
    "alchemy_async": _alchemy_async,
    "session_async": _session_async,
}
KINDS = [("sqlite", name) for name in OF_SQLITE] + [("postgres", name) for name in OF_POSTGRES]


def opened(folder: Path, name: str) -> AbstractAsyncContextManager[Caller]:
    """Open a connection of that name to the database of a folder."""
    return (OF_SQLITE if address_of(folder) is None else OF_POSTGRES)[name](folder)


def plain(folder: Path, *, any_thread: bool = False) -> AbstractAsyncContextManager[Caller]:
    """Open the driver's own connection."""
    return _sqlite3(folder, any_thread=any_thread) if address_of(folder) is None else _psycopg(folder)
