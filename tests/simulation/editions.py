"""Processes that run one of several codes of an app on one database, started and stopped one by one."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Self

from kizami import JobContext, Kizami
from kizami.core.errors import NotFoundError
from kizami.engine.settings import WorkerSettings
from kizami.store.protocol import FireRecord, Schedule
from kizami.testing.world import World

MINUTE_MS = 60_000
SETTINGS = WorkerSettings(poll_ms=5_000, reap_ms=3_600_000, heartbeat_write_ms=3_600_000)
GRACE = timedelta(milliseconds=SETTINGS.grace_ms + SETTINGS.poll_ms)
EVERY, SOME = "report", "extra"
WITH_SOME = (1, 3)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was performed: its schedule, its tick, and the code whose definition made it."""

    schedule: str
    at: int
    code: int


@dataclass(slots=True)
class Deployment:
    """A world of processes; code 1, 2 and 3 define the schedule `report` differently, 1 and 3 also `extra`."""

    world: World = field(default_factory=lambda: World(Kizami("host"), start="2026-01-01T00:00:30", settings=SETTINGS))
    performed: list[Job] = field(default_factory=list)
    _processes: dict[str, Kizami] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.world.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for process in tuple(self._running) if kind is None else ():
                self.stop(process)
            self.world.__exit__(kind, error, trace)
        finally:
            self._stack.close()

    def start(self, process: str) -> Kizami:
        """Start a process; the digit that its name begins with is its code. One that runs is started again."""
        if process in self._running:
            self.stop(process)
        if process not in self._processes:
            app = self._processes[process] = code(int(process[0]), self.performed)
            here = app.rebound(runtime=self.world.app.runtime, store=self.world.store, settings=SETTINGS)
            self._stack.enter_context(here)
        self.world.start(self._processes[process])
        self._running.add(process)
        return self._processes[process]

    def stop(self, process: str) -> None:
        self.world.stop(self._processes[process])
        self._running.discard(process)

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._running)

    def run_for(self, length: timedelta) -> list[Job]:
        """Let time pass and return the jobs performed meanwhile."""
        before = len(self.performed)
        self.world.run_for(length)
        return self.performed[before:]

    def schedule(self, name: str = EVERY) -> Schedule | None:
        try:
            return self.world.wait(next(iter(self._processes.values())).schedules.get(name))
        except NotFoundError:
            return None

    def ledger(self, name: str = EVERY) -> tuple[FireRecord, ...]:
        return self.world.wait(self.world.store.schedules.ledger("shop", name, 10_000))


def code(number: int, performed: list[Job]) -> Kizami:
    """Return an app as that code defines it, in a process of its own."""
    app = Kizami("shop")

    @app.performer
    async def note(payload: int, ctx: JobContext) -> None:
        origin = ctx.job.origin
        assert origin is not None
        performed.append(Job(origin.schedule, origin.scheduled_at, payload))

    app.schedule(EVERY, note, payload=number, cron="* * * * *")
    if number in WITH_SOME:
        app.schedule(SOME, note, payload=number, cron="* * * * *")
    return app
