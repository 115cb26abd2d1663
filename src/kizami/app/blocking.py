"""An app for programs without an event loop (Django, Flask, a script): the same words, and each call waits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from kizami.app.bindings import Bindings
from kizami.app.jobs import Jobs
from kizami.app.performer import JobId, JobRequest, Performer
from kizami.app.portal import Portal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from types import TracebackType

    from kizami.core.options import EnqueueChanges
    from kizami.engine.settings import WorkerSettings
    from kizami.runtime import Clock
    from kizami.store.protocol import Store

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")
Q = ParamSpec("Q")


class Room(Generic[T]):
    """A part of an app whose methods are called through a portal."""

    def __init__(self, portal: Portal, part: Callable[[Store], T]) -> None:
        self._portal = portal
        self._part = part

    def call(self, method: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        """Run a method of the part to its end."""

        async def work(store: Store) -> R:
            return await method(self._part(store))

        return self._portal.run(work)


def _blocked(
    method: Callable[Concatenate[T, Q], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Room[T], Q], R]:
    """Return a method that waits for one of asyncio."""

    @functools.wraps(method)
    def call(room: Room[T], /, *args: Q.args, **kwargs: Q.kwargs) -> R:
        return room.call(lambda part: method(part, *args, **kwargs))

    return call


class BlockingJobs(Room[Jobs]):
    """An app's jobs; see `Jobs`."""

    get = _blocked(Jobs.get)
    list = _blocked(Jobs.list)
    wait = _blocked(Jobs.wait)
    retry = _blocked(Jobs.retry)
    cancel = _blocked(Jobs.cancel)
    reschedule = _blocked(Jobs.reschedule)
    retry_many = _blocked(Jobs.retry_many)
    cancel_many = _blocked(Jobs.cancel_many)
    count_by_state = _blocked(Jobs.count_by_state)


class BlockingBindings(Room[Bindings]):
    """An app's stored bindings; see `Bindings`."""

    list = _blocked(Bindings.list)
    get = _blocked(Bindings.get)
    configure = _blocked(Bindings.configure)
    pause = _blocked(Bindings.pause)
    resume = _blocked(Bindings.resume)
    diagnose = _blocked(Bindings.diagnose)


class Blocking:
    """What a program without an event loop does with an app; any thread may call, and many at once.

    It has connections and an event loop of its own, opened at the first call and closed by `close`, by the end of a
    `with`, or at the process's exit. Each call raises WrongStateError on a thread on which an event loop runs, and in a
    fork of the process that opened it.
    """

    def __init__(self, app: str, make_store: Callable[[], Store], clock: Clock, settings: WorkerSettings) -> None:
        self._portal = Portal(app, make_store)
        self.jobs = BlockingJobs(self._portal, lambda store: Jobs(app, store.jobs, clock))
        self.bindings = BlockingBindings(self._portal, lambda store: Bindings(app, store.bindings, settings))

    def enqueue(
        self,
        performer: Performer[P, Any],
        payload: P = None,  # type: ignore[assignment]  # a performer without payload needs no argument
        *,
        connection: object = None,
        **options: Unpack[EnqueueChanges],
    ) -> JobId:
        """Add a job durably, as `Performer.enqueue` does; return its id, which says whether it was there already."""
        return self.enqueue_many([performer.job(payload, **options)], connection=connection)[0]

    def enqueue_many(self, requests: Iterable[JobRequest], *, connection: object = None) -> list[JobId]:
        """Add jobs in order, all or none, as `Kizami.enqueue_many` does; return their ids."""
        new = [request.new for request in requests]
        if connection is not None:
            return list(map(JobId, self._portal.store.jobs.enqueue_in_blocking(connection, new)))

        async def work(store: Store) -> list[JobId]:
            return list(map(JobId, await store.jobs.enqueue(new)))

        return self._portal.run(work)

    def close(self) -> None:
        """Finish what was begun and disconnect; the next call opens again."""
        self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
