"""The whole app in virtual time: the real engine on SQLite, a year in seconds, the same from the same seed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from kizami.core.times import to_datetime, to_epoch_ms
from kizami.core.zone import load_zone
from kizami.engine.settings import WorkerSettings
from kizami.runtime import ProcessIdentity
from kizami.store.sqlite.store import SqliteStore
from kizami.testing.virtual import SeededEntropy, VirtualClock, VirtualLoop, VirtualRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType
    from typing import Any, Self

    from kizami.app.app import Kizami

T = TypeVar("T")
CALM_MS: Final = 6 * 3_600_000


def calm(settings: WorkerSettings) -> WorkerSettings:
    """Return settings for long simulations: the rules of `settings`, but looks that only serve other processes and
    stepped clocks come every six hours.
    """  # noqa: D205 - one sentence
    return replace(settings, poll_ms=CALM_MS, reap_ms=CALM_MS, heartbeat_write_ms=CALM_MS)


class World:
    """One or several apps in a virtual world; a context manager.

    `start` and the instants given to `run_until` are aware datetimes, or ISO texts read in `time_zone`. Without
    `settings` the engine polls calmly (see `calm`); give `settings=app.settings` where its own pace matters.
    `database` is a path for a file instead of memory. Inside, the app's clock, chance and store are the world's.
    """

    def __init__(
        self,
        app: Kizami,
        *others: Kizami,
        start: str | datetime = "2026-01-01",
        seed: int = 1,
        time_zone: str = "UTC",
        settings: WorkerSettings | None = None,
        database: str = ":memory:",
    ) -> None:
        self.app = app
        self._apps = (app, *others)
        self._zone = load_zone(time_zone)
        self._settings = settings
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, self._instant(start))
        self._entropy = SeededEntropy(seed)
        self.gone: set[ProcessIdentity] = set()
        self.store = SqliteStore(database, self._runtime(0), busy_ms=0, inline=True)
        self._bindings = ExitStack()
        self._workers: dict[Kizami, AsyncExitStack] = {}

    @property
    def now(self) -> datetime:
        """Return the wall clock in the world's time zone."""
        return to_datetime(self.clock.now_ms(), self._zone)

    def __enter__(self) -> Self:
        """Open the store and start a worker for each app; a start that fails leaves no world behind."""
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _begin(self) -> None:
        for number, app in enumerate(self._apps):
            settings = calm(app.settings) if self._settings is None else self._settings
            settings = replace(settings, processes=0)  # time in a child process would be real
            rebound = app.rebound(runtime=self._runtime(number), store=self.store, settings=settings)
            self._bindings.enter_context(rebound)
        self.wait(self.store.open())
        for app in self._apps:
            self.start(app)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the workers gracefully and take the apps back out of the world."""
        try:
            if kind is None:
                for app in tuple(self._workers):
                    self.stop(app)
                self.wait(self.store.close())
        finally:
            self._bindings.close()
            _abandon(self.loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, as `world.wait(app.jobs.get(id))`; virtual time passes while it waits."""
        return self.loop.run_until_complete(work)

    def run_for(self, length: timedelta) -> None:
        """Let that much time pass."""
        self.wait(self.clock.sleep(length.total_seconds()))

    def run_until(self, at: str | datetime) -> None:
        """Let time pass until the wall clock shows that instant; one that has passed is no wait."""
        self.run_for(timedelta(milliseconds=max(0, self._instant(at) - self.clock.now_ms())))

    def run_until_true(self, condition: Callable[[], bool], *, within: timedelta = timedelta(hours=1)) -> None:
        """Let time pass in steps of 10 ms until a condition holds. Raises AssertionError when it doesn't come true."""
        end = self.loop.time() + within.total_seconds()
        while not condition():
            assert self.loop.time() < end, f"it did not come true within {within}"  # noqa: S101 - a testing tool
            self.run_for(timedelta(milliseconds=10))

    def step_wall_clock(self, by: timedelta) -> None:
        """Set the wall clock of all machines forward or, with a negative length, back."""
        self.clock.step_wall(by)

    def start(self, app: Kizami) -> None:
        """Start an app's worker, as at the beginning or after `stop`."""
        stack = AsyncExitStack()
        self.wait(stack.enter_async_context(app.working()))
        self._workers[app] = stack

    def stop(self, app: Kizami) -> None:
        """Stop an app's worker gracefully."""
        self.wait(self._workers.pop(app).aclose())

    def _runtime(self, number: int) -> VirtualRuntime:
        process = ProcessIdentity("world", "boot", "namespace", number + 1, "start")
        return VirtualRuntime(self.loop, self.clock, self._entropy, process, self.gone)

    def _instant(self, at: str | datetime) -> int:
        if isinstance(at, str):
            read = datetime.fromisoformat(at)
            at = read if read.tzinfo is not None else read.replace(tzinfo=self._zone.tzinfo)
        return to_epoch_ms(at, name="instant")


def _abandon(loop: VirtualLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True)) if left else None
    loop.close()
