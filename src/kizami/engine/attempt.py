"""One attempt at one job, from the lease to the report."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import StoreError
from kizami.core.options import Guarantee
from kizami.core.results import shorten_error
from kizami.engine.child import ChildDiedError, ChildFailedError
from kizami.engine.child_process import Order
from kizami.engine.context import JobContext, LeaseLost, enter
from kizami.engine.lease import HeldLease
from kizami.engine.performing import RunsIn
from kizami.engine.reports import Reports
from kizami.engine.stragglers import settle_stragglers
from kizami.engine.threads import Call
from kizami.store.protocol import LeaseFence, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.engine.child import Child
    from kizami.engine.crew import Crew
    from kizami.engine.performing import Performing
    from kizami.engine.station import Station
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.job")
START_MS: Final = 60_000
"""How long a child process may take to start and to import its performer; the timeout counts from then on."""


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job while this worker has it. Deadlines are on the boot clock, in milliseconds."""

    job: ClaimedJob
    performer: Performing
    station: Station
    crew: Crew
    loop: asyncio.AbstractEventLoop
    way: RunsIn = field(init=False)
    deadline_boot: int = field(init=False)
    progress: float | None = None
    beats: int = 0
    beats_written: int = 0
    lease: HeldLease | None = None
    _reports: Reports = field(init=False)
    _stop: asyncio.Future[None] = field(init=False)
    _started: bool = False
    _cut_off: bool = False
    _goes_on: bool = False
    _child: Child | None = None

    def __post_init__(self) -> None:
        clock, timeout_ms = self.station.runtime.clock, self.job.options.timeout_ms
        self.way = self.crew.way_of(self.performer)
        self.deadline_boot = clock.boot_ms() + max(timeout_ms, START_MS if self.way == "process" else 0)
        self._reports = Reports(self.job, self.station.runtime, clock.now_ms())
        self._stop = self.loop.create_future()

    @property
    def is_within_deadline(self) -> bool:
        """Tell whether the worker may still vouch for this job."""
        return self.station.runtime.clock.boot_ms() < self.deadline_boot

    def break_off(self) -> None:
        """Stop the performer because the worker's grace time is over."""
        if not self._stop.done():
            self._stop.set_result(None)

    async def run(self) -> Report | None:
        """Do the attempt and say what became of it; None when the job turned out not to be ours any more."""
        try:
            return await self._run()
        except StoreError as error:
            log.warning("attempt of %s could not begin: %s", self.job.job_id, error)
            return self._reports.released(started=self._started)
        except Exception as error:  # our own mistake must not leave the job without a report
            log.exception("the attempt of %s broke", self.job.job_id)
            return self._reports.unreported(shorten_error(error)) if self._started else self._reports.failed(error)
        finally:
            if self._child is not None:
                self.crew.children.give_back(self._child)
            if self.lease is not None and not self._goes_on:
                await self._release_lease(self.lease)

    async def _run(self) -> Report | None:
        origin = self.job.origin
        if origin is not None and origin.lease is not None and not await self._take_lease(origin.lease):
            log.info("lease held: %s skips (%s)", self.job.job_id, origin.lease)
            return self._reports.lease_held()
        if self.way == "process" and (refusal := await self._take_child()) is not None:
            return refusal
        once = self.job.options.guarantee is Guarantee.AT_MOST_ONCE
        if once and not await self.station.store.jobs.start(self.job.key, self.job.claim):
            return None
        self._started = True
        body = asyncio.ensure_future(self._call())
        await self._watch(body)
        return self._judge(body)

    async def _take_child(self) -> Report | None:
        """Get a child process ready; return a report when there is none to be had."""
        taking = asyncio.ensure_future(self.crew.children.take(self.performer.work_for(self.job)))
        await self._watch(taking)
        if taking.cancelled():
            text = f"its child process was not ready within {START_MS} ms"
            return self._reports.released(started=False) if self._stop.done() else self._reports.failed(text)
        error = taking.exception()
        if error is not None:
            return self._reports.failed(f"its child process could not get ready: {_text_of(error)}")
        self._child = taking.result()
        clock = self.station.runtime.clock
        self.deadline_boot, self._reports.started_at = self._full_timeout(), clock.now_ms()
        return None

    async def _watch(self, body: asyncio.Future[Any]) -> None:
        """Wait for the end of a call, or cancel it at its deadline or when the worker stops."""
        while not body.done() and not self._stop.done() and (left_ms := self._left_ms()) > 0:
            await asyncio.wait({body, self._stop}, timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        if body.done():
            return
        self._cut_off = True
        body.cancel()
        await asyncio.wait({body}, timeout=self._settle_seconds)
        if not body.done():
            self._give_up(body)

    def _give_up(self, body: asyncio.Future[Any]) -> None:
        """Wait no longer for code that ignores its cancellation."""
        self._goes_on = True
        body.add_done_callback(partial(_forget, self.crew.overstays.begin("loop")))
        log.error("%s: code of it ignores its cancellation and goes on", self.job.job_id)

    async def _call(self) -> object:
        context = self._context()
        enter(context)
        try:
            value = await self._called(context)
            return await value if inspect.isawaitable(value) else value
        except (SystemExit, KeyboardInterrupt) as error:  # the performer's end, not the worker's
            raise RuntimeError(f"the performer raised {type(error).__name__}({error})") from error
        finally:
            await settle_stragglers(context, self._settle_seconds, self._give_up)

    async def _called(self, context: JobContext) -> object:
        match self.way:
            case "loop":
                return self.performer.call(self.job.payload, context)
            case "thread":
                return await self._call_in_thread(Call(partial(self.performer.call, self.job.payload, context)))
            case "process":
                return await self._call_in_process()

    async def _call_in_thread(self, call: Call[object]) -> object:
        """Call a synchronous performer; when it is given up, its thread goes on and the lease must stay taken."""
        try:
            return await self.crew.threads.call(call)
        except asyncio.CancelledError:
            end = self.crew.overstays.begin("thread")
            self._goes_on = call.give_up(end)
            if not self._goes_on:
                end()
            raise

    async def _call_in_process(self) -> object:
        """Call a performer in its child process; when it is given up, the process is killed."""
        assert self._child is not None  # noqa: S101 - taken before the job was started
        fence = self.lease.fence if self.lease else None
        work = self.performer.work_for(self.job)
        order = Order(work, self.job, self.station.worker_id, fence, self.deadline_boot)
        try:
            return await self.crew.threads.call(Call(partial(self._child.perform, order, self._move_deadline)))
        except asyncio.CancelledError:
            self._child.kill()
            raise

    def _judge(self, body: asyncio.Future[Any]) -> Report:
        """Name the way a call ended."""
        error = None if not body.done() or body.cancelled() else body.exception()
        if _is_lease_lost(error):
            return self._reports.lease_lost()
        if self._cut_off and (error is not None or not body.done() or body.cancelled()):
            return self._cut_short(error)
        if body.cancelled():
            return self._reports.failed("CancelledError: the performer was cancelled")
        if isinstance(error, ChildDiedError):
            return self._reports.unreported(str(error))
        if error is not None:
            return self._reports.failed(_text_of(error))
        return self._reports.completed(body.result())

    def _cut_short(self, error: BaseException | None) -> Report:
        if self._stop.done():
            return self._reports.released(started=self._started)
        text = f"timed out after {self.job.options.timeout_ms} ms"
        if error is not None and not isinstance(error, TimeoutError):
            text = f"{text}; then it raised {_text_of(error)}"
        match self.way:
            case "process":
                return self._reports.unreported(f"{text}; its process was killed", Outcome.TIMED_OUT)
            case "thread":
                return self._reports.unreported(f"{text}; its thread may still be running", Outcome.TIMED_OUT)
            case "loop" if self._goes_on:
                return self._reports.unreported(f"{text}; it ignores its cancellation", Outcome.TIMED_OUT)
            case "loop":
                return self._reports.failed(text, Outcome.TIMED_OUT)

    def _context(self) -> JobContext:
        clock = self.station.runtime.clock
        return JobContext(
            self.job,
            self.station.store,
            self.station.runtime,
            self.station.worker_id,
            self.lease,
            _move_deadline=self._move_deadline,
            _deadline_ms=lambda: clock.now_ms() + self._left_ms(),
        )

    async def _take_lease(self, name: str) -> bool:
        station, settings = self.station, self.station.settings.lease
        fence = LeaseFence(name, station.runtime.entropy.token())
        taken = await station.store.leases.acquire(
            self.job.app, name, fence.run_id, self.job.job_id, station.worker_id, settings.stale_ms
        )
        if taken:
            self.lease = HeldLease(self.job.app, fence, station.store.leases, station.runtime.clock, settings)
        return taken

    async def _release_lease(self, lease: HeldLease) -> None:
        try:
            await self.station.store.leases.release(self.job.app, lease.fence)
        except StoreError as error:
            log.warning("lease %s could not be released, it ends by silence: %s", lease.fence.name, error)

    def _move_deadline(self, progress: float | None) -> None:
        """Take note of a heartbeat, from whatever thread."""
        self.deadline_boot = self._full_timeout()
        self.progress = progress if progress is not None else self.progress
        self.beats += 1

    def _full_timeout(self) -> int:
        return self.station.runtime.clock.boot_ms() + self.job.options.timeout_ms

    def _left_ms(self) -> int:
        return self.deadline_boot - self.station.runtime.clock.boot_ms()

    @property
    def _settle_seconds(self) -> float:
        """What a cancelled performer gets to end: so little that its report comes before the reaper and the stop."""
        return min(self.station.settings.grace_ms, self.station.settings.stop_ms) / 2000


def _forget(end: Callable[[], None], late: asyncio.Future[Any]) -> None:
    """Take no notice of a late answer, but of the end."""
    end()
    if not late.cancelled():
        late.exception()


def _is_lease_lost(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(LeaseLost) is not None
    return isinstance(error, LeaseLost)


def _text_of(error: BaseException) -> str:
    return str(error) if isinstance(error, ChildFailedError | ChildDiedError) else shorten_error(error)
