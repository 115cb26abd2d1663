"""One PostgreSQL database: a few connections, each with a thread of its own, all awaited from the event loop.

The threads are there for the sake of others: a transaction holds locks, and on the event loop it would hold them for
as long as anybody's code blocks that loop.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

import psycopg
from psycopg import AsyncConnection

from kizami.core.errors import StoreError, WrongStateError
from kizami.store.callers import driver_connection, driver_connection_async, unknown_kind
from kizami.store.looks import LOOK_MS, Looks, too_slow
from kizami.store.ownership import CLOSED_REMEDY, Ownership
from kizami.store.postgres.callers import AsyncCaller, SyncCaller, on_a_thread
from kizami.store.postgres.gathering import GATHER_MAX, Gathering, Sharing
from kizami.store.postgres.joined import Identity, home_of, joined
from kizami.store.postgres.session import Errand, Session
from kizami.store.protocol.store import ALL_TOPICS, Topic
from kizami.store.wakes import Wakes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kizami.core.times import EpochMs
    from kizami.store.postgres.place import Place
    from kizami.store.transaction import Ahead, Alone, Foresight, Joint, Read, Write

_WANTED: Final = "a connection of psycopg, or a connection or session of SQLAlchemy over one,"
T = TypeVar("T")
Item = TypeVar("Item")
Answered = TypeVar("Answered")
WRITERS_MAX: Final = 4
READERS_MAX: Final = 1
LOOKERS_MAX: Final = 1
"""Lanes of their own, so that neither a claim nor a tick waits for somebody's long list. With the heart and the
listener: 8 connections at most."""


class Database:
    """The connections of one store. They are made when they are needed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._wakes = Wakes()
        self._lanes: dict[Errand, _Lanes] = {}
        self._looks = Looks(place.shown)
        self.ownership = Ownership(place.shown)
        self._heart = Session(place)
        self._heart_lock = threading.Lock()
        self._home: Identity | None = None
        self._tell_others: Callable[[tuple[Topic, ...]], None] = lambda _: None
        self._sharing = Sharing(self._lend_writer)

    def open(self) -> None:
        """Start; the first connection is made by the first operation."""
        self._lanes = {
            Errand.WRITE: _Lanes(self.place, WRITERS_MAX, "kizami-writer"),
            Errand.READ: _Lanes(self.place, READERS_MAX, "kizami-reader"),
            Errand.LOOK: _Lanes(self.place, LOOKERS_MAX, "kizami-looker"),
        }

    async def close(self) -> None:
        """Finish what waits, then disconnect."""
        lanes, self._lanes = self._lanes, {}
        self._wakes.clear()
        await asyncio.to_thread(self._stop, list(lanes.values()))

    def _stop(self, lanes: list[_Lanes]) -> None:
        for lane in lanes:
            lane.stop()
        with self._heart_lock:
            self._heart.close()

    async def write(self, operation: Write[T]) -> T:
        """Run an operation in a committed transaction. Raises StoreError; what the operation raises is raised here."""
        return await asyncio.shield(asyncio.wrap_future(self._submit(operation, Errand.WRITE)))

    async def share(self, operation: Write[T], foreseen: Sequence[Ahead] = ()) -> T:
        """Run an operation in a committed transaction, with those that wait at the same time."""
        return await asyncio.shield(asyncio.wrap_future(self._sharing.submit(operation, foreseen)))

    def gathered(
        self, operation: Joint[Item, Answered], foresee: Foresight[Item], alone: Alone[Item, Answered]
    ) -> Callable[[Sequence[Item]], Awaitable[tuple[Answered, ...]]]:
        """Return what writes items, those of concurrent callers in one transaction, all or none of each caller's."""
        gathering = Gathering(self._lend_writer, operation, foresee, alone)

        async def write(items: Sequence[Item]) -> tuple[Answered, ...]:
            if len(items) > GATHER_MAX:
                return await self.write(lambda transaction, moment: tuple(operation(transaction, moment, items)))
            return await asyncio.shield(asyncio.wrap_future(gathering.submit(items)))

        return write

    async def read(self, operation: Read[T]) -> T:
        """Run an operation that only reads, on one snapshot, for the engine; no look is before it."""
        return await asyncio.shield(asyncio.wrap_future(self._submit(operation, Errand.READ)))

    async def look(self, operation: Read[T]) -> T:
        """Run an operation that only reads, for people. Raises StoreSlowError when it takes long or many ask."""
        future = self._looks.admit(lambda: self._submit(operation, Errand.LOOK))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), LOOK_MS / 1_000)
        except TimeoutError as error:
            raise too_slow(self.place.shown) from error

    async def join(self, connection: object, operation: Write[T]) -> T:
        """Run an operation in the transaction of a caller's connection, which may be one of asyncio."""
        found = await driver_connection_async(connection)
        if isinstance(found, AsyncConnection):
            caller: SyncCaller | AsyncCaller = AsyncCaller(found, asyncio.get_running_loop(), threading.Event())
        else:
            caller = self._caller(found)
        return await on_a_thread(caller, lambda: self._join(caller, operation))

    def join_blocking(self, connection: object, operation: Write[T]) -> T:
        """Run as `join` does, on this thread."""
        found = driver_connection(connection)
        if isinstance(found, AsyncConnection):
            raise WrongStateError(
                "An AsyncConnection of psycopg can only be awaited.",
                remedy="Await enqueue(..., connection=...) on its event loop, or give a synchronous one.",
            )
        return self._join(self._caller(found), operation)

    def _caller(self, connection: object) -> SyncCaller:
        if not isinstance(connection, psycopg.Connection):
            raise unknown_kind(connection, self.place.shown, _WANTED)
        return SyncCaller(connection, threading.Event())

    def _join(self, caller: SyncCaller | AsyncCaller, operation: Write[T]) -> T:
        with joined(caller, self.place, self._is_home) as (transaction, moment):
            return operation(transaction, moment)

    def _is_home(self, found: Identity) -> bool:
        """Tell whether that is this database; it is asked again before a no, since it may have been restored."""
        if found != self._home:
            self._home = home_of(self.place)
        return found == self._home

    def write_blocking(self, operation: Write[T]) -> T:
        """Run a write on this thread, which isn't the event loop, on a connection kept for such threads."""
        self._require_open()
        with self._heart_lock:
            return self._heart.run(operation, Errand.WRITE)

    async def now(self) -> EpochMs:
        """Return the database's wall clock."""
        return await self.read(lambda _, moment: moment.now)

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        """Call `wake` on the event loop after a change that somebody may wait for; return what ends that."""
        return self._wakes.add(wake, topics)

    def announce(self, *topics: Topic) -> None:
        """Tell those who wait, in this process and in others, that there is something to look at."""
        self.wake(topics)
        self._tell_others(topics)

    def wake(self, topics: tuple[Topic, ...]) -> None:
        """Tell those who wait in this process."""
        self._wakes.call(topics)

    def on_announce(self, tell_others: Callable[[tuple[Topic, ...]], None]) -> None:
        """Call `tell_others` after each change of this process; it may come often, and must return at once."""
        self._tell_others = tell_others

    def _lend_writer(self, work: Callable[[Session], None]) -> None:
        self._require_open()
        self.ownership.require()
        self._lanes[Errand.WRITE].lend(work)

    def _submit(self, operation: Write[T], errand: Errand) -> Future[T]:
        self._require_open()
        self.ownership.require()
        return self._lanes[errand].lend(lambda session: session.run(operation, errand))

    def _require_open(self) -> None:
        if not self._lanes:
            raise StoreError(f"The database {self.place.shown} is closed.", remedy=CLOSED_REMEDY)


class _Lanes:
    """Threads with a session each, started as they are needed."""

    def __init__(self, place: Place, size: int, name: str) -> None:
        self._place = place
        self._own = threading.local()
        self._sessions: list[Session] = []
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    def lend(self, work: Callable[[Session], T]) -> Future[T]:
        """Have a thread work with its session."""
        return self._threads.submit(self._run, work)

    def stop(self) -> None:
        self._threads.shutdown(wait=True)
        for session in self._sessions:
            session.close()

    def _run(self, work: Callable[[Session], T]) -> T:
        session: Session | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = Session(self._place)
            self._sessions.append(session)
        return work(session)
