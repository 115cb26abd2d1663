"""Enqueueing for processes that know only the database: no performers, no event loop."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, Unpack

from kizami.app.bindings import Bindings
from kizami.app.blocking import BlockingBindings, BlockingJobs
from kizami.app.client_jobs import job_of
from kizami.app.jobs import Jobs
from kizami.app.performer import JobId
from kizami.app.portal import Portal
from kizami.core.errors import NotFoundError, PayloadError
from kizami.core.names import require_name
from kizami.engine.settings import WorkerSettings
from kizami.runtime import SystemRuntime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from kizami.core.options import EnqueueChanges
    from kizami.runtime import Runtime
    from kizami.store.protocol import Binding, NewJob, Store

KNOWN_MS: Final = 60_000
"""How long a client goes by the bindings that it has read; keys and shards are checked anew by every enqueue."""


class ClientRequest(NamedTuple):
    """A job ready to be enqueued, made by `Client.job`."""

    binding: str
    payload: object
    options: EnqueueChanges


class Client:
    """Enqueues jobs of an app by the names of their bindings, from any thread; the performers' code isn't needed.

    Each call is checked against the shards, the required keys and the JSON Schema that the app's workers stored. It
    has connections of its own, as `Kizami.blocking` has: closed by `close`, by the end of a `with`, or at exit.
    """

    def __init__(self, app: str, database_url: str | None = None, *, runtime: Runtime | None = None) -> None:
        self.app = require_name("App", app)
        self._runtime: Runtime = SystemRuntime() if runtime is None else runtime
        self._url = database_url
        self._portal = Portal(app, self._make_store)
        self._door = threading.Lock()
        self._known: Mapping[str, Binding] = {}
        self._known_at: int | None = None
        self.jobs = BlockingJobs(self._portal, lambda store: Jobs(app, store.jobs, self._runtime.clock))
        self.bindings = BlockingBindings(self._portal, lambda store: Bindings(app, store.bindings, WorkerSettings()))

    def job(self, binding: str, payload: object = None, **options: Unpack[EnqueueChanges]) -> ClientRequest:
        """Return a job request for `enqueue_many`, where it is checked."""
        return ClientRequest(binding, payload, options)

    def enqueue(
        self, binding: str, payload: object = None, *, connection: object = None, **options: Unpack[EnqueueChanges]
    ) -> JobId:
        """Add a job durably; return its id, which says whether the job was there already.

        Options that aren't given are Kizami's defaults. With `connection`, the job exists iff the caller's transaction
        commits. Raises NotFoundError for a binding that no worker has stored, PayloadError, InvalidInputError where
        the keys don't fit, DefinitionError for an option, StoreError.
        """
        return self.enqueue_many([self.job(binding, payload, **options)], connection=connection)[0]

    def enqueue_many(self, requests: Iterable[ClientRequest], *, connection: object = None) -> list[JobId]:
        """Add jobs in order, all or none; return their ids. Raises as `enqueue` does."""
        new = self._checked(list(requests))
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

    def _checked(self, requests: list[ClientRequest]) -> list[NewJob]:
        now = self._runtime.clock.boot_ms()
        if self._known_at is not None and now - self._known_at < KNOWN_MS:
            try:
                return self._made(requests)
            except (NotFoundError, PayloadError):
                pass  # what was read a while ago may have changed: only what is stored now may refuse
        with self._door:
            self._known = {each.name: each for each in self.bindings.list()}
            self._known_at = now
        return self._made(requests)

    def _made(self, requests: list[ClientRequest]) -> list[NewJob]:
        known = self._known
        return [job_of(known, self.app, *request, self._runtime) for request in requests]

    def _make_store(self) -> Store:
        from kizami.app.app import DATABASE_URL, DEFAULT_URL  # noqa: PLC0415 - they import each other's parts
        from kizami.store.opening import store_at  # noqa: PLC0415 - importing kizami must stay light

        url: Any = (os.environ.get(DATABASE_URL) or DEFAULT_URL) if self._url is None else self._url
        return store_at(url, self._runtime)
