"""Statements on a caller's psycopg connection: with cursors of our own, awaited on its loop where it has one."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.types.numeric import Int8Dumper, IntLoader
from psycopg.types.string import StrDumper, TextLoader

from kizami.store.postgres.connection import row_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")
_CANCEL_SECONDS: Final = 5.0


class Fetched:
    """What a statement gave back, all of it."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class SyncCaller(NamedTuple):
    """A connection on whose thread we are, or whose caller waits for us."""

    connection: psycopg.Connection[Any]
    stopped: threading.Event

    def run(self, text: str, facts: Mapping[str, Any] | None = None) -> Fetched:
        """Run a statement. Raises psycopg.Error, CancelledError once nobody wants the answer."""
        if self.stopped.is_set():
            raise asyncio.CancelledError
        return self.run_whatever_happened(text, facts)

    def run_whatever_happened(self, text: str, facts: Mapping[str, Any] | None = None) -> Fetched:
        """Run a statement. Raises psycopg.Error."""
        with psycopg.Cursor(self.connection, row_factory=row_maker) as cursor:
            _use_own_types(cursor)
            cursor.execute(text.encode(), facts)
            return Fetched(cursor.fetchall() if cursor.description else [], cursor.rowcount)

    async def interrupt(self) -> None:
        """End the statement that runs, and all that would follow."""
        self.stopped.set()
        await asyncio.to_thread(self.connection.cancel_safe, timeout=_CANCEL_SECONDS)


class AsyncCaller(NamedTuple):
    """A connection of asyncio: its statements run on its loop, while a thread waits for each."""

    connection: psycopg.AsyncConnection[Any]
    loop: asyncio.AbstractEventLoop
    stopped: threading.Event

    def run(self, text: str, facts: Mapping[str, Any] | None = None) -> Fetched:
        """Run a statement. Raises as that of `SyncCaller` does."""
        if self.stopped.is_set():
            raise asyncio.CancelledError
        return self.run_whatever_happened(text, facts)

    def run_whatever_happened(self, text: str, facts: Mapping[str, Any] | None = None) -> Fetched:
        """Run a statement. Raises psycopg.Error."""
        return asyncio.run_coroutine_threadsafe(self._run(text, facts), self.loop).result()

    async def _run(self, text: str, facts: Mapping[str, Any] | None) -> Fetched:
        async with psycopg.AsyncCursor(self.connection, row_factory=row_maker) as cursor:
            _use_own_types(cursor)
            await cursor.execute(text.encode(), facts)
            return Fetched(await cursor.fetchall() if cursor.description else [], cursor.rowcount)

    async def interrupt(self) -> None:
        """End the statement that runs, and all that would follow."""
        self.stopped.set()
        await self.connection.cancel_safe(timeout=_CANCEL_SECONDS)


async def on_a_thread(caller: SyncCaller | AsyncCaller, work: Callable[[], T]) -> T:
    """Work on a thread, since a statement may wait for another transaction's end.

    Who stops waiting gets the connection back with its transaction as it was: CancelledError is raised after that.
    """
    working: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        interrupting = asyncio.ensure_future(caller.interrupt())
        ending = asyncio.gather(working, interrupting, return_exceptions=True)
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                continue
        raise


def _use_own_types(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> None:
    """Have this cursor write and read as our own connections do, whatever its connection was taught."""
    cursor.adapters.register_dumper(int, Int8Dumper)
    cursor.adapters.register_dumper(str, StrDumper)
    for name in ("int2", "int4", "int8"):
        cursor.adapters.register_loader(name, IntLoader)
    for name in ("text", "name", "json"):
        cursor.adapters.register_loader(name, TextLoader)
