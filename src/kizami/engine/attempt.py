"""One attempt at one job, from the lease to the report."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from kizami.core.errors import StoreError
from kizami.core.options import Guarantee
from kizami.core.outcomes import SNOOZES_MAX, Cancel, Snooze, after_failure, after_unreported_end
from kizami.core.results import encode_result, shorten_error
from kizami.core.states import JobState
from kizami.engine.context import JobContext, LeaseLost, enter
from kizami.engine.lease import HeldLease
from kizami.engine.stragglers import settle_stragglers
from kizami.store.protocol import LeaseFence, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from kizami.engine.performing import Performing
    from kizami.engine.station import Station
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.job")


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job while this worker has it. Deadlines are on the boot clock, in milliseconds."""

    job: ClaimedJob
    performer: Performing
    station: Station
    threads: Executor
    loop: asyncio.AbstractEventLoop
    started_at: int = 0
    deadline_boot: int = 0
    started: bool = False
    progress: float | None = None
    beats: int = 0
    beats_written: int = 0
    lease: HeldLease | None = None
    shutting_down: bool = False
    _thread_goes_on: bool = False
    _scope: asyncio.Timeout | None = None
    _body: asyncio.Future[Any] | None = field(default=None)

    def __post_init__(self) -> None:
        clock = self.station.runtime.clock
        self.started_at, self.deadline_boot = clock.now_ms(), clock.boot_ms() + self.job.options.timeout_ms

    @property
    def is_within_deadline(self) -> bool:
        """Tell whether the worker may still vouch for this job."""
        return self.station.runtime.clock.boot_ms() < self.deadline_boot

    def break_off(self) -> None:
        """Stop the performer because the worker's grace time is over."""
        self.shutting_down = True
        if self._body is not None:
            self._body.cancel()

    async def run(self) -> Report | None:
        """Do the attempt and say what became of it; None when the job turned out not to be ours any more."""
        try:
            return await self._run()
        except StoreError as error:
            log.warning("attempt of %s could not begin: %s", self.job.job_id, error)
            return self._released()
        finally:
            if self.lease is not None and not self._thread_goes_on:
                await self._release_lease(self.lease)

    async def _run(self) -> Report | None:
        origin = self.job.origin
        if origin is not None and origin.lease is not None and not await self._take_lease(origin.lease):
            log.info("lease held: %s skips (%s)", self.job.job_id, origin.lease)
            return self._report(JobState.COMPLETED, Outcome.COMPLETED, result='"lease_held"', skipped_by_lease=True)
        once = self.job.options.guarantee is Guarantee.AT_MOST_ONCE
        if once and not await self.station.store.jobs.start(self.job.key, self.job.claim):
            return None
        self.started = True
        return await self._performed()

    async def _performed(self) -> Report:
        """Call the performer and name the way it ended."""
        try:
            return self._completed(await self._perform())
        except LeaseLost:
            return self._lease_lost()
        except BaseExceptionGroup as group:
            return self._lease_lost() if group.subgroup(LeaseLost) is not None else self._failed(group)
        except TimeoutError as error:
            return self._timed_out() if self._expired() else self._failed(error)
        except asyncio.CancelledError:
            return self._released() if self.shutting_down else self._cancelled()
        except Exception as error:  # noqa: BLE001 - whatever a performer raises is its attempt's failure
            return self._failed(error)

    async def _perform(self) -> object:
        context = JobContext(
            self.job,
            self.station.store,
            self.station.runtime,
            self.station.worker_id,
            self.lease,
            _move_deadline=self._move_deadline,
            _deadline_ms=lambda: (
                self.station.runtime.clock.now_ms() + self.deadline_boot - self.station.runtime.clock.boot_ms()
            ),
        )
        remaining = (self.deadline_boot - self.station.runtime.clock.boot_ms()) / 1000
        async with asyncio.timeout(remaining) as self._scope:
            self._body = asyncio.ensure_future(self._call(context))
            if self.shutting_down:
                self._body.cancel()
            return await self._body

    async def _call(self, context: JobContext) -> object:
        enter(context)
        try:
            if self.performer.is_async:
                return await cast("Awaitable[object]", self.performer.call(self.job.payload, context))
            return await self._call_beside(context)
        except (SystemExit, KeyboardInterrupt) as error:  # the performer's end, not the worker's
            raise RuntimeError(f"the performer raised {type(error).__name__}({error})") from error
        finally:
            await settle_stragglers(context)

    async def _call_beside(self, context: JobContext) -> object:
        """Call a synchronous performer; when it is given up, its thread goes on and the lease must stay taken."""
        try:
            return await self.loop.run_in_executor(self.threads, self._call_in_thread, context)
        except asyncio.CancelledError:
            self._thread_goes_on = True
            raise

    def _call_in_thread(self, context: JobContext) -> object:
        enter(context)
        try:
            return self.performer.call(self.job.payload, context)
        finally:
            enter(None)

    async def _take_lease(self, name: str) -> bool:
        fence = LeaseFence(name, self.station.runtime.entropy.token())
        settings = self.station.settings.lease
        taken = await self.station.store.leases.acquire(
            self.job.app, name, fence.run_id, self.job.job_id, self.station.worker_id, settings.stale_ms
        )
        if taken:
            self.lease = HeldLease(self.job.app, fence, self.station.store.leases, self.station.runtime.clock, settings)
        return taken

    async def _release_lease(self, lease: HeldLease) -> None:
        try:
            await self.station.store.leases.release(self.job.app, lease.fence)
        except StoreError as error:
            log.warning("lease %s could not be released, it ends by silence: %s", lease.fence.name, error)

    def _move_deadline(self, progress: float | None) -> None:
        self.deadline_boot = self.station.runtime.clock.boot_ms() + self.job.options.timeout_ms
        self.progress = progress if progress is not None else self.progress
        self.beats += 1
        self.loop.call_soon_threadsafe(self._reschedule)

    def _reschedule(self) -> None:
        scope = self._scope
        if scope is not None and not scope.expired() and self._body is not None and not self._body.done():
            remaining = (self.deadline_boot - self.station.runtime.clock.boot_ms()) / 1000
            scope.reschedule(self.loop.time() + max(0.0, remaining))

    def _expired(self) -> bool:
        return self._scope is not None and self._scope.expired()

    def _completed(self, value: object) -> Report:
        match value:
            case Cancel(reason):
                return self._report(JobState.CANCELLED, Outcome.CANCELLED, error=shorten_error(reason) or None)
            case Snooze(delay_ms) if self.job.snoozes < SNOOZES_MAX:
                return self._report(JobState.SCHEDULED, Outcome.SNOOZED, delay_ms=delay_ms, uses_attempt=False)
            case Snooze():
                return self._failed(f"snoozed more than {SNOOZES_MAX} times in a row")
            case _:
                result, note = encode_result(value)
                return self._report(JobState.COMPLETED, Outcome.COMPLETED, result=result, result_note=note)

    def _failed(self, error: BaseException | str, outcome: Outcome = Outcome.FAILED) -> Report:
        job, text = self.job, shorten_error(error)
        after = after_failure(
            job.attempt, job.attempts_allowed, job.retries, job.options.backoff, self.station.runtime.entropy.fraction()
        )
        log.error("attempt %d of %s failed: %s", job.attempt, job.job_id, text)
        return self._report(after.state, outcome, delay_ms=after.delay_ms, error=text)

    def _lease_lost(self) -> Report:
        return self._report(JobState.COMPLETED, Outcome.COMPLETED, result='"lease_lost"')

    def _cancelled(self) -> Report:
        return self._timed_out() if self._expired() else self._failed("CancelledError: the performer was cancelled")

    def _timed_out(self) -> Report:
        text = f"timed out after {self.job.options.timeout_ms} ms"
        unknowable = not self.performer.is_async and self.job.options.guarantee is Guarantee.AT_MOST_ONCE
        if unknowable:
            log.error("attempt %d of %s %s", self.job.attempt, self.job.job_id, text)
            return self._report(JobState.STALLED, Outcome.STALLED, error=f"{text}; its thread may still be running")
        return self._failed(text, Outcome.TIMED_OUT)

    def _released(self) -> Report:
        state = after_unreported_end(self.job.options.guarantee, started=self.started)
        if state is JobState.STALLED:
            return self._report(state, Outcome.STALLED, error="the worker was stopped while it ran")
        return self._report(state, Outcome.RELEASED, uses_attempt=False)

    def _report(self, state: JobState, outcome: Outcome, **more: Any) -> Report:
        ended_at = max(self.started_at, self.station.runtime.clock.now_ms())
        return Report(
            self.job.key, self.job.claim, state, outcome, started_at=self.started_at, ended_at=ended_at, **more
        )
