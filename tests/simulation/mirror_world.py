"""The mirror as it is, on a real SQLite file, against the Slack stand-in, under one clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

from kizami.core.options import JobOptions
from kizami.engine.context import JobContext, enter
from kizami.engine.lease import HeldLease, LeaseSettings
from kizami.runtime import Background, Clock, Entropy, ProcessIdentity
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from kizami.slack import Slack
from kizami.store.protocol import ClaimedJob, LeaseFence, Store
from kizami.store.rooms import boards, deliveries, leases
from kizami.store.transaction import Transaction
from tests.conformance.mirror_store import START_MS, HandClock, MirrorStore, mirror_store

APP = "shop"
START_BOOT_MS = HandClock().boot
STATUS, ALERTS = "C0STATUS", "C0ALERTS"
UNLIMITED = SandboxSettings(rate_limited=False)


class CountedEntropy:
    """Tokens that never repeat and are the same in every run."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def fraction(self) -> float:
        return 0.5

    def token(self, size: int = 16) -> str:
        return f"{next(self._numbers):0{2 * size}x}"


class _NoBeat:
    def stop(self) -> None:
        """Nothing beats here."""


@dataclass
class HandRuntime:
    """The world under the test's hands."""

    clock: Clock
    entropy: Entropy = field(default_factory=CountedEntropy)
    process: ProcessIdentity = field(default_factory=lambda: ProcessIdentity("host", "boot-1", "ns", 1, "1"))

    def is_gone(self, process: ProcessIdentity) -> bool:
        return process != self.process

    def beat(self, _name: str, _every_seconds: float, _action: Callable[[], None]) -> Background:
        return _NoBeat()


@dataclass
class SlackClock:
    """Slack's wall clock: it goes with the test's time, and the steps of the worker's wall clock don't touch it."""

    ours: HandClock
    ahead_ms: int = 0

    def now_ms(self) -> int:
        return START_MS + self.ours.boot - START_BOOT_MS + self.ahead_ms

    def boot_ms(self) -> int:
        return self.ours.boot

    async def sleep(self, seconds: float) -> None:
        await self.ours.sleep(seconds)


@dataclass
class World:
    """A worker with its store, and Slack."""

    runtime: HandRuntime
    clock: HandClock
    store: MirrorStore
    sandbox: Sandbox
    slack: Slack
    slack_clock: SlackClock

    def enter_job(self, worker_id: str = "w1", lease: HeldLease | None = None) -> JobContext:
        """Make a job of a worker the one that the test's code runs in."""
        job = ClaimedJob(1, 1, APP, "sync#0:1", "sync", "null", 1, 3, 0, 0, JobOptions(), None, self.clock.now)
        context = JobContext(job, cast("Store", self.store), self.runtime, worker_id, lease)
        enter(context)
        return context

    async def take_lease(self, run_id: str, stale_ms: int = 600_000) -> HeldLease:
        assert await self.store.leases.acquire(APP, "mirror", run_id, "host", "w1", stale_ms)
        fence = LeaseFence("mirror", run_id)
        return HeldLease(APP, fence, self.store.leases, self.clock, LeaseSettings())

    def posted(self, channel: str = ALERTS) -> list[str | None]:
        """Return the texts that Slack accepted as posts."""
        return [entry.text for entry in self.sandbox.log.posts(channel)]

    def timestamps(self, channel: str = ALERTS) -> list[str]:
        """Return the ts of what Slack accepted as posts."""
        return [str(entry.ts) for entry in self.sandbox.log.posts(channel)]

    def calls(self, method: str) -> int:
        return len(self.sandbox.log.calls(method))

    async def die_at(self, phase: str, work: Callable[[], Any]) -> None:
        """Run work until a phase and let its process go there: nothing after it happens, not even clean-up."""
        reached = asyncio.Event()

        async def hold(at: str, _item: str) -> None:
            if at == phase:
                reached.set()
                await asyncio.get_running_loop().create_future()

        self.slack.on_phase = hold
        self.enter_job("dead")
        task = asyncio.create_task(work())
        _ABANDONED.append(task)
        await reached.wait()
        self.slack.on_phase = None
        await self.bury("dead")
        self.enter_job("w2")

    async def bury(self, worker_id: str) -> None:
        def free(transaction: Transaction, _: object) -> None:
            for room in (leases, deliveries, boards):
                room.free_of(transaction, worker_id)

        await self.store.database.write(free)


_ABANDONED: list[asyncio.Task[Any]] = []


@asynccontextmanager
async def mirror_world(
    folder: Path, settings: SandboxSettings = UNLIMITED, *, slack_ahead_ms: int = 0
) -> AsyncIterator[World]:
    """Open a world; its job is entered. Slack's clock may be ahead of the worker's, or, negative, behind."""
    clock = HandClock()
    runtime = HandRuntime(clock)
    slack_clock = SlackClock(clock, slack_ahead_ms)
    sandbox = Sandbox(settings, HandRuntime(slack_clock))
    async with mirror_store(folder, clock) as store, sandbox.serving() as url:
        world = World(runtime, clock, store, sandbox, Slack(api_url=url, timeout_s=5), slack_clock)
        world.enter_job()
        yield world
        for task in _ABANDONED:
            task.cancel()
        await asyncio.gather(*_ABANDONED, return_exceptions=True)
        _ABANDONED.clear()
