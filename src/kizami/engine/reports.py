"""What became of an attempt, as the report that the store keeps."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kizami.core.options import Guarantee
from kizami.core.outcomes import SNOOZES_MAX, Cancel, Snooze, after_failure, after_unreported_end
from kizami.core.results import KeptResult, keep_result, shorten_error
from kizami.core.states import JobState
from kizami.store.protocol import Outcome, Report

if TYPE_CHECKING:
    from types import TracebackType

    from kizami.runtime import Runtime
    from kizami.store.protocol import ClaimedJob

log = logging.getLogger("kizami.job")
_OWN: Final = ("kizami.engine.", "kizami.app.", "kizami.testing.", "concurrent.", "asyncio.")
LEASE_WAIT_MS: Final = 1_000
"""How long a job that may have run waits for its lease the first time; then twice as long, and so on."""


def _of_the_performer(error: BaseException) -> TracebackType | None:
    """Return the traceback without our own way to the performer."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_OWN):
        trace = trace.tb_next
    return trace or error.__traceback__


@dataclass(slots=True)
class Reports:
    """Writes the report of one attempt at a job. `started_at` is the wall clock, in milliseconds."""

    job: ClaimedJob
    runtime: Runtime
    started_at: int

    def completed(self, value: object) -> Report:
        """Report what the performer returned: a snooze, a cancel, or a result."""
        match value:
            case None:
                return self._report(JobState.COMPLETED, Outcome.COMPLETED)
            case Cancel(reason):
                return self._report(JobState.CANCELLED, Outcome.CANCELLED, error=shorten_error(reason) or None)
            case Snooze() if self.job.snoozes < SNOOZES_MAX:
                return self._report(JobState.SCHEDULED, Outcome.SNOOZED, delay_ms=value.delay_ms, uses_attempt=False)
            case Snooze():
                return self.failed(f"snoozed more than {SNOOZES_MAX} times in a row")
        try:
            kept = value if isinstance(value, KeptResult) else keep_result(value)
        except TypeError as error:  # what it returned is no result but work that nobody did
            return self.failed(error)
        return self._report(JobState.COMPLETED, Outcome.COMPLETED, result=kept.text, result_note=kept.note)

    def failed(self, error: BaseException | str, outcome: Outcome = Outcome.FAILED) -> Report:
        """Report a failure: again after the backoff, or FAILED when the attempts are used up."""
        job, text = self.job, shorten_error(error)
        after = after_failure(
            job.attempt, job.attempts_allowed, job.retries, job.options.backoff, self.runtime.entropy.fraction()
        )
        raised = (type(error), error, _of_the_performer(error)) if isinstance(error, BaseException) else None
        log.error("attempt %d of %s failed: %s", job.attempt, job.job_id, text, exc_info=raised)
        return self._report(after.state, outcome, delay_ms=after.delay_ms, error=text)

    def unreported(self, text: str, outcome: Outcome = Outcome.FAILED) -> Report:
        """Report an attempt whose performer didn't tell its end: never again if it was promised at most once."""
        if self.job.options.guarantee is Guarantee.AT_LEAST_ONCE:
            return self.failed(text, outcome)
        log.error("attempt %d of %s: %s", self.job.attempt, self.job.job_id, text)
        return self._report(JobState.STALLED, Outcome.STALLED, error=shorten_error(text))

    def released(self, *, started: bool) -> Report:
        """Hand the job back, using no attempt: the worker stops."""
        state = after_unreported_end(self.job.options.guarantee, started=started)
        if state is JobState.STALLED:
            return self._report(state, Outcome.STALLED, error="the worker was stopped while it ran")
        return self._report(state, Outcome.RELEASED, uses_attempt=False)

    def lease_held(self, name: str, stale_ms: int) -> Report:
        """Report a tick that found its lease held: it is skipped, unless it was claimed before and so may have run.

        Then it waits, using no attempt: ever longer, at most for the lease's staleness window.
        """
        if self.job.claim == 1:
            return self._report(JobState.COMPLETED, Outcome.COMPLETED, result='"lease_held"', skipped_by_lease=True)
        if self.job.snoozes >= SNOOZES_MAX:
            return self.failed(f"the lease {name} was held by another run at each of {SNOOZES_MAX} looks")
        delay_ms = min(stale_ms, LEASE_WAIT_MS << min(self.job.snoozes, 20))
        waits = f"the lease {name} is held by another run"
        return self._report(JobState.SCHEDULED, Outcome.SNOOZED, delay_ms=delay_ms, uses_attempt=False, error=waits)

    def lease_lost(self) -> Report:
        """Report a run that stopped because its lease belongs to another run now."""
        return self._report(JobState.COMPLETED, Outcome.COMPLETED, result='"lease_lost"')

    def _report(self, state: JobState, outcome: Outcome, **more: Any) -> Report:
        ended_at = max(self.started_at, self.runtime.clock.now_ms())
        return Report(
            self.job.key, self.job.claim, state, outcome, started_at=self.started_at, ended_at=ended_at, **more
        )
