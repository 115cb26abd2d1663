"""The public object: it holds an app's performers and schedules, and runs them on a store."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kizami.app.binding import refuse_short_grace, split_declaration
from kizami.app.callables import body_of
from kizami.app.decorator import PerformerDecorator
from kizami.app.definitions import ScheduleInCode, define, make_timing
from kizami.app.in_process import place_of, require_found
from kizami.app.opening import Opening
from kizami.app.performer import JobId, JobRequest, Performer
from kizami.app.running import Running
from kizami.app.windows import require_kept
from kizami.core.errors import ConfigurationError, DefinitionError
from kizami.core.names import require_binding, require_name
from kizami.core.options import JobOptions
from kizami.core.policy import Policy, Retention
from kizami.engine.settings import WorkerSettings
from kizami.runtime import Runtime, SystemRuntime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from kizami.app.bindings import Bindings
    from kizami.app.blocking import Blocking
    from kizami.app.boards import Boards
    from kizami.app.deliveries import Deliveries
    from kizami.app.jobs import Jobs
    from kizami.app.schedules import Schedules
    from kizami.core.window import Finding, Window
    from kizami.core.zone import TimeZone
    from kizami.engine.condition import Condition
    from kizami.engine.cursor import Cursor
    from kizami.store.protocol import Store

DATABASE_URL = "KIZAMI_DATABASE_URL"
DEFAULT_URL = "sqlite:///kizami.db"


class Kizami:
    """Performers, schedules and settings of one app.

    `name` keeps apps on one database apart. `policy` and `retention` are those of performers that declare none. The
    database is `database_url`, else KIZAMI_DATABASE_URL, else kizami.db in the working directory. Raises
    DefinitionError and ConfigurationError.
    """

    def __init__(
        self,
        name: str = "kizami",
        *,
        database_url: str | None = None,
        runtime: Runtime | None = None,
        settings: WorkerSettings | None = None,
        store: Store | None = None,
        policy: Policy | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.name = require_name("App", name)
        self.runtime: Runtime = SystemRuntime() if runtime is None else runtime
        self.settings = WorkerSettings() if settings is None else settings
        if database_url is not None and not isinstance(database_url, str):
            raise ConfigurationError(
                f"App {name}: database_url is of type {type(database_url).__name__}, not text.",
                remedy="Give sqlite:///kizami.db, or leave it out to read KIZAMI_DATABASE_URL.",
            )
        if not isinstance(self.settings, WorkerSettings):
            raise DefinitionError(
                f"App {name}: settings is {settings!r}.", remedy="Give WorkerSettings(...).", field="settings"
            )
        self._url = database_url
        self._store = store
        self._store_is_given = store is not None
        self._blocking: Blocking | None = None
        self._opening = Opening(name)
        self._policy = policy
        self._retention = retention
        self._performers: dict[str, Performer[Any, Any]] = {}
        self._schedules: dict[str, ScheduleInCode] = {}
        self._start_checks: list[Callable[[], Awaitable[None]]] = []
        self._conditions: list[Condition] = []

    @property
    def store(self) -> Store:
        """Return the app's store; the database is chosen at its first use."""
        if self._store is None:
            from kizami.store.opening import store_at  # noqa: PLC0415 - importing kizami must stay light

            self._store = store_at(self.database_url, self.runtime)
        return self._store

    @property
    def database_url(self) -> str:
        """Return the URL of the app's database: its own, else that of the environment, else a file here."""
        return (os.environ.get(DATABASE_URL) or DEFAULT_URL) if self._url is None else self._url

    @property
    def performers(self) -> dict[str, Performer[Any, Any]]:
        """Return the performers by binding."""
        return dict(self._performers)

    @property
    def definitions(self) -> tuple[ScheduleInCode, ...]:
        """Return the schedules as code defines them."""
        return tuple(self._schedules.values())

    @property
    def jobs(self) -> Jobs:
        """Return the app's jobs; the app must be open."""
        from kizami.app.jobs import Jobs  # noqa: PLC0415 - importing kizami must stay light

        return Jobs(self.name, self.store.jobs, self.runtime.clock)

    @property
    def blocking(self) -> Blocking:
        """Return the app for programs without an event loop; the app itself needn't be open, and may be elsewhere.

        Raises ConfigurationError for an app that was made with a store, or is in a test's world.
        """
        if self._store_is_given:
            raise ConfigurationError(
                f"App {self.name} was given a store, which blocking calls can't share.",
                remedy="Give the app a database_url instead.",
            )
        if self._blocking is None:
            from kizami.app.blocking import Blocking  # noqa: PLC0415 - importing kizami must stay light
            from kizami.store.opening import store_at  # noqa: PLC0415 - as above

            self._blocking = Blocking(
                self.name, lambda: store_at(self.database_url, self.runtime), self.runtime.clock, self.settings
            )
        return self._blocking

    @property
    def bindings(self) -> Bindings:
        """Return the app's bindings; the app must be open."""
        from kizami.app.bindings import Bindings  # noqa: PLC0415 - importing kizami must stay light

        return Bindings(self.name, self.store.bindings, self.settings)

    @property
    def boards(self) -> Boards:
        """Return the app's status boards; the app must be open."""
        from kizami.app.boards import Boards  # noqa: PLC0415 - importing kizami must stay light

        return Boards(self.name, self.store.boards)

    @property
    def deliveries(self) -> Deliveries:
        """Return what the app owes to Slack channels; the app must be open."""
        from kizami.app.deliveries import Deliveries  # noqa: PLC0415 - importing kizami must stay light

        return Deliveries(self.name, self.store.deliveries)

    @property
    def schedules(self) -> Schedules:
        """Return the app's schedules; the app must be open."""
        from kizami.app.schedules import Schedules  # noqa: PLC0415 - importing kizami must stay light

        return Schedules(self.name, self.store, self._schedules, self.settings)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return what keeps this process's workers from their work, a sentence each: empty when all is well."""
        return tuple(trouble for condition in self._conditions for trouble in condition.troubles)

    def cursor(self, name: str) -> Cursor:
        """Return the stored cursor of that name, for reading source rows inside a job. Raises DefinitionError."""
        from kizami.engine.cursor import Cursor  # noqa: PLC0415 - importing kizami must stay light

        return Cursor(name)

    def zone_of(self, schedule: str) -> TimeZone | None:
        """Return the time zone of a schedule in code."""
        found = self._schedules.get(schedule)
        return found.zone if found else None

    @property
    def performer(self) -> PerformerDecorator:
        """Return the decorator that registers performers: `@app.performer` or `@app.performer(timeout=...)`."""
        return PerformerDecorator(self._add_performer)

    def schedule(
        self,
        name: str,
        target: Performer[Any, Any],
        *,
        payload: object = None,
        cron: str | Iterable[str] | None = None,
        every: timedelta | None = None,
        time_zone: str | None = None,
        overlap: str = "skip",
        lease: str | None = None,
        driver: str = "inner",
        window: Window | None = None,
        **options: Any,
    ) -> None:
        """Define a schedule that enqueues a job at every tick.

        `payload` is a value or a function (sync or async) of the Tick. Raises DefinitionError naming the field.
        """
        if require_name("Schedule", name) in self._schedules:
            raise DefinitionError(
                f"Schedule {name} is defined twice.", remedy="Give one of them another name.", field="name"
            )
        timing = make_timing(f"Schedule {name}", cron, every, time_zone)
        self._schedules[name] = define(
            name,
            target,
            timing,
            payload=payload,
            overlap=overlap,
            lease=lease,
            driver=driver,
            window=window,
            options=options,
        )

    def scheduled(
        self, name: str, *, cron: str | Iterable[str] | None = None, every: timedelta | None = None, **more: Any
    ) -> Callable[[Callable[..., Any]], Performer[None, Any]]:
        """Register a function as performer and schedule in one; it may take a Tick and a JobContext.

        Raises DefinitionError, also for the decorator without its parentheses: it would define nothing.
        """
        if callable(name):
            remedy = 'Write @app.scheduled("name", cron="0 9 * * *"), or with every=.'
            raise DefinitionError(f"@app.scheduled has {name!r} for a name.", remedy=remedy, field="name")

        def decorate(function: Callable[..., Any]) -> Performer[None, Any]:
            performer = self._add_performer(function, None, {})
            self.schedule(name, performer, cron=cron, every=every, **more)
            return performer

        return decorate

    def at_start(self, check: Callable[[], Awaitable[None]]) -> None:
        """Have a check awaited whenever a worker of this app starts, before its first tick; what it raises stops it."""
        self._start_checks.append(check)

    async def enqueue_many(self, requests: Iterable[JobRequest], *, connection: object = None) -> list[JobId]:
        """Add jobs in order, all or none, in one step; return their ids. Raises StoreError.

        With `connection`, the caller's own to the same database, they exist iff its transaction commits; the app
        needn't be open. Raises OtherDatabaseError, WrongStateError for a connection without a transaction.
        """
        new = [request.new for request in requests]
        store = self.store.jobs
        return list(map(JobId, await (store.enqueue(new) if connection is None else store.enqueue_in(connection, new))))

    def check(self) -> tuple[Finding, ...]:
        """Return every tick that falls outside its schedule's posting window, from now on.

        Raises DefinitionError when no schedule has a window, since then nothing would be checked.
        """
        windowed = [entry for entry in self._schedules.values() if entry.window is not None]
        if not windowed:
            raise DefinitionError(
                f"App {self.name} has no schedule with a posting window, so there is nothing to check.",
                remedy="Give a schedule window=Window(...).",
            )
        now = self.runtime.clock.now_ms()
        return tuple(finding for entry in windowed for finding in entry.findings(now))

    async def open(self) -> None:
        """Connect to the store and bring it up to date; one that is open is left as it is. Raises StoreError.

        The app belongs to the event loop on which it was opened; on another, WrongStateError.
        """
        await self._opening.open(self.store)

    async def close(self) -> None:
        """Take one `open` back: the last disconnects from the store. The app can be opened again.

        Raises WrongStateError inside of `running` or `working`, unless it was opened besides.
        """
        await self._opening.close(self.store)

    def running(self, *, worker: bool = True, fires: bool = True) -> Running:
        """Run the app while the body runs: its store is open and, with `worker`, ticks fire and jobs are performed.

        Without `fires` the worker performs jobs only and leaves the stored schedules as they are. Inside another
        `running` of the same app, the store stays open until the outer one ends. Use it with `async with`.
        """
        return Running(self.name, self._run(worker=worker, fires=fires))

    @asynccontextmanager
    async def _run(self, *, worker: bool, fires: bool) -> AsyncIterator[Kizami]:
        async with self._opening.held(self.store, connects=True):
            if not worker:
                yield self
                return
            async with self.working(fires=fires):
                yield self

    @asynccontextmanager
    async def working(self, *, fires: bool = True) -> AsyncIterator[Kizami]:
        """Fire ticks (unless told not to) and perform jobs while the body runs, on a store that is open already."""
        from kizami.engine.worker import Worker  # noqa: PLC0415 - importing kizami must stay light

        for performer in self._performers.values():
            require_found(performer)
        scheduled = {name: entry.scheduled() for name, entry in self._schedules.items()} if fires else None
        if fires:
            now = await self.store.schedules.now()
            await require_kept(self.name, self._schedules.values(), self.store.schedules, now)
        for check in self._start_checks:
            await check()
        await self.store.bindings.declare(self.name, [each.declaration for each in self._performers.values()])
        engine = Worker(self.name, self._performers, scheduled, self.store, self.runtime, self.settings)
        async with self._opening.held(self.store, connects=False), engine.running():
            self._conditions.append(engine.condition)
            try:
                yield self
            finally:
                self._conditions.remove(engine.condition)

    @contextmanager
    def rebound(self, *, runtime: Runtime, store: Store, settings: WorkerSettings) -> Iterator[Kizami]:
        """Put this app into another world while the body runs: other clocks, chance, store and pace."""
        before = self.runtime, self._store, self.settings, self._opening, self._store_is_given
        self.runtime, self._store, self.settings, self._opening = runtime, store, settings, Opening(self.name)
        self._store_is_given = True
        try:
            yield self
        finally:
            self.runtime, self._store, self.settings, self._opening, self._store_is_given = before

    def _defaults(self) -> dict[str, Any]:
        """Return what is declared of a binding whose performer doesn't say it."""
        grace, kept = (timedelta(milliseconds=ms) for ms in (self.settings.grace_ms, self.settings.retention_ms))
        return {
            "policy": Policy(reaper_grace=grace) if self._policy is None else self._policy,
            "retention": Retention(kept, kept) if self._retention is None else self._retention,
        }

    def _add_performer(
        self, function: Callable[..., Any], binding: str | None, options: dict[str, Any]
    ) -> Performer[Any, Any]:
        name = require_binding(_own_name(function) if binding is None else binding)
        if name in self._performers:
            raise DefinitionError(
                f"Binding {name} is registered twice.", remedy="Give one of them another binding.", field="binding"
            )
        owner = f"Performer {name}"
        body = body_of(owner, function)
        place = place_of(owner, function, body, options.get("runs_in"))
        mine = {option: value for option, value in options.items() if option != "runs_in"}
        declaration, rest = split_declaration(name, mine, self._defaults())
        refuse_short_grace(owner, declaration.policy, self.settings)
        checked = JobOptions().changed(owner, rest)  # type: ignore[arg-type]  # unknown names are refused inside
        performer: Performer[Any, Any] = Performer(self, name, body, checked, declaration, place)
        self._performers[name] = performer
        return performer


def _own_name(function: Callable[..., Any]) -> str:
    """Return the name that a performer has by itself. Raises DefinitionError."""
    name = getattr(function, "__name__", None)
    if callable(function) and isinstance(name, str):
        return name
    raise DefinitionError(
        f"Performer {function!r} has no name of its own, or is no function.",
        remedy="Decorate a function or a class, or give it a name: @app.performer(binding=...).",
        field="binding",
    )
