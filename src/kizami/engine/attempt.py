"""One attempt at one job, from the lease to the report."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kizami.core.errors import StoreError
from kizami.core.options import Guarantee
from kizami.core.results import shorten_error
from kizami.engine.child import ChildDiedError, ChildFailedError
from kizami.engine.child_process import Order
from kizami.engine.context import JobContext, LeaseLost, enter
from kizami.engine.lease import HeldLease
from kizami.engine.performing import RunsIn
from kizami.engine.reports import Reports
from kizami.engine.stragglers import may_have_left, settle_stragglers
from kizami.engine.threads import Call
from kizami.store.protocol import LeaseFence, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kizami.engine.child import Child
    from kizami.engine.crew import Crew
    from kizami.engine.deadlines import Deadlines
    from kizami.engine.performing import Performing
    from kizami.engine.station import Station
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.job")
T = TypeVar("T")
START_MS: Final = 60_000
"""How long a child process may take to start and to import its performer; the timeout counts from then on."""
_CANCELLED: Final = "CancelledError: the performer was cancelled"


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job while this worker has it. Deadlines are on the boot clock, in milliseconds.

    An attempt is one task: the performer runs in it, and is cut off by cancelling it. `on_end` is called once, with the
    report, or with None when the job turned out not to be ours any more.
    """

    job: ClaimedJob
    performer: Performing
    station: Station
    crew: Crew
    loop: asyncio.AbstractEventLoop
    deadlines: Deadlines
    on_end: Callable[[Attempt, Report | None], None]
    way: RunsIn = field(init=False)
    deadline_boot: int = field(init=False)
    progress: float | None = None
    beats: int = 0
    beats_written: int = 0
    can_be_cut: bool = False
    lease: HeldLease | None = None
    _reports: Reports = field(init=False)
    _task: asyncio.Task[None] | None = None
    _giving_up: asyncio.TimerHandle | None = None
    _cut_off: bool = False
    _stopping: bool = False
    _started: bool = False
    _goes_on: bool = False
    _has_ended: bool = False
    _child: Child | None = None

    def __post_init__(self) -> None:
        clock, timeout_ms = self.station.runtime.clock, self.job.options.timeout_ms
        self.way = self.crew.way_of(self.performer)
        self.deadline_boot = clock.boot_ms() + (max(timeout_ms, START_MS) if self.way == "process" else timeout_ms)
        self._reports = Reports(self.job, self.station.runtime, clock.now_ms())

    @property
    def is_within_deadline(self) -> bool:
        """Tell whether the worker may still vouch for this job."""
        return self.station.runtime.clock.boot_ms() < self.deadline_boot

    def begin(self) -> None:
        """Start the attempt."""
        name = f"kizami-job {self.job.job_id}"
        self._task = asyncio.Task(self._see_through(), loop=self.loop, name=name)  # no factory: it is no straggler

    def break_off(self) -> None:
        """Stop the performer because the worker's grace time is over."""
        self._stopping = True
        self.cut()

    async def _see_through(self) -> None:
        try:
            report = await self._run()
        except StoreError as error:
            log.warning("attempt of %s could not begin: %s", self.job.job_id, error)
            report = self._reports.released(started=self._started)
        except Exception as error:  # our own mistake must not leave the job without a report
            log.exception("the attempt of %s broke", self.job.job_id)
            report = self._reports.unreported(shorten_error(error)) if self._started else self._reports.failed(error)
        if self._child is not None:
            self.crew.children.give_back(self._child)
        if self.lease is not None and not self._goes_on:
            await self._release_lease(self.lease)
        self._end(report)

    def _end(self, report: Report | None) -> None:
        """Tell the end, once. Whatever way it ended: without its lease the work is another run's concern."""
        if not self._has_ended:
            self._has_ended = True
            has_lost = report is not None and self.lease is not None and self.lease.lost
            self.on_end(self, self._reports.lease_lost() if has_lost else report)

    async def _run(self) -> Report | None:
        origin = self.job.origin
        if origin is not None and origin.lease is not None and not await self._take_lease(origin.lease):
            log.info("lease held: %s doesn't run now (%s)", self.job.job_id, origin.lease)
            return self._reports.lease_held(origin.lease, self.station.settings.lease.stale_ms)
        if self.way == "process" and (refusal := await self._take_child()) is not None:
            return refusal
        once = self.job.options.guarantee is Guarantee.AT_MOST_ONCE
        if once and not await self.station.store.jobs.start(self.job.key, self.job.claim):
            return None
        if self._stopping:
            return self._reports.released(started=False)
        self._started = True
        return await self._performed()

    async def _take_child(self) -> Report | None:
        """Get a child process ready; return a report when there is none to be had."""
        work = self.performer.work_for(self.job)
        try:
            self._child = await self._cuttable(self.crew.children.take(work))
        except asyncio.CancelledError:
            if self._stopping:
                return self._reports.released(started=False)
            return self._reports.failed(f"its child process was not ready within {START_MS} ms")
        except Exception as error:  # noqa: BLE001 - whatever kept it from getting ready
            return self._reports.failed(f"its child process could not get ready: {_text_of(error)}")
        clock = self.station.runtime.clock
        self.deadline_boot, self._reports.started_at = self._full_timeout(), clock.now_ms()
        return None

    async def _performed(self) -> Report:
        """Call the performer and name the way it ended."""
        try:
            value = await self._cuttable(self._call())
        except asyncio.CancelledError:
            return self._cut_short(None) if self._cut_off else self._reports.failed(_CANCELLED)
        except BaseException as error:  # noqa: BLE001 - whatever a performer raises is its attempt's end, no more
            return self._failed(error)
        return self._reports.completed(value)

    async def _cuttable(self, work: Awaitable[T]) -> T:
        """Do what is cancelled at the deadline, or when the worker stops."""
        self.can_be_cut = True
        self.deadlines.expect(self.deadline_boot)
        try:
            return await work
        finally:
            self.can_be_cut = False
            if self._giving_up is not None:
                self._giving_up.cancel()
            self._take_back_cancellation()

    def cut(self) -> None:
        """Cancel the performer, once: its time is up, or the worker stops."""
        if self.can_be_cut and not self._cut_off and self._task is not None:
            self._cut_off = True
            self._giving_up = self.loop.call_later(self._settle_seconds, self._give_up)
            self._task.cancel()

    def _take_back_cancellation(self) -> None:
        """Let what the engine still has to await here go undisturbed."""
        assert self._task is not None  # noqa: S101 - it is this very task
        while self._task.cancelling():
            self._task.uncancel()

    def _give_up(self) -> None:
        """Wait no longer for a performer that ignores its cancellation."""
        assert self._task is not None  # noqa: S101 - it was cancelled before
        self._leave(self._task)
        self._end(self._cut_short(None))

    def _leave(self, task: asyncio.Task[Any]) -> None:
        """Count code that ignores its cancellation, until it ends."""
        self._goes_on = True
        task.add_done_callback(partial(_forget, self.crew.overstays.begin("loop")))
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
            if may_have_left(context, self.loop):
                await settle_stragglers(context, self._settle_seconds, self._leave)

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
        work = self.performer.work_for(self.job)
        order = Order(work, self.job, self.station.worker_id, self.deadline_boot)
        try:
            return await self.crew.threads.call(Call(partial(self._child.perform, order, self._move_deadline)))
        except asyncio.CancelledError:
            self._child.kill()
            raise

    def _failed(self, error: BaseException) -> Report:
        """Name the way in which a call raised."""
        if _is_lease_lost(error):
            return self._reports.lease_lost()
        if self._cut_off:
            return self._cut_short(error)
        if isinstance(error, ChildDiedError):
            return self._reports.unreported(str(error))
        return self._reports.failed(str(error) if isinstance(error, ChildFailedError) else error)

    def _cut_short(self, error: BaseException | None) -> Report:
        if self._stopping:
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
        return JobContext(
            self.job,
            self.station.store,
            self.station.runtime,
            self.station.worker_id,
            self.lease,
            _move_deadline=self._move_deadline,
            _deadline_ms=self._deadline_ms,
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

    def _deadline_ms(self) -> int:
        return self.station.runtime.clock.now_ms() + self._left_ms()

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
