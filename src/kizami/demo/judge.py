"""Counts what an unattended run has shown: from the sandbox's log, the kills, the clock and the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kizami.demo.doubles import count_doubles
from kizami.demo.mirror import ALERTS, STATUS
from kizami.demo.truth import ticks_between, turns_down
from kizami.demo.verdict import Verdict
from kizami.sandbox.faults import Fault
from kizami.store.protocol import FireOutcome

if TYPE_CHECKING:
    from kizami.demo.supervisor import KillPlan
    from kizami.runtime import Clock
    from kizami.sandbox.log import CallLog

EVERY: Final = timedelta(seconds=1)
ACCEPTED_AS_ERROR: Final = Fault.server_error(accepted=True).name
"""A post that is accepted, but answered as if it might not be: its answer is as good as lost."""


@dataclass(slots=True)
class Span:
    """When the run's ticks are planned, by the wall clock, epoch ms: what Kizami says of it doesn't count."""

    clock: Clock
    began: int = 0
    ended: int = 0
    stopped: int = 0

    def begin(self, pid: int) -> None:
        """Note that a worker got its turn; the first one counts."""
        del pid
        self.began = self.began or self.clock.now_ms()


@dataclass(frozen=True, slots=True)
class Ticks:
    """What the ledger accounts for, by outcome, and what was to be accounted for."""

    outcomes: Counter[str]
    planned: int
    began_after: float

    @classmethod
    def counted(cls, span: Span, anchor: int, last: int, outcomes: Counter[str]) -> Ticks:
        """Count from the schedule's beginning to the end of the replay, or of a ledger that goes on until the stop."""
        until = min(max(span.ended, last), span.stopped)
        planned = ticks_between(anchor, until, EVERY // timedelta(milliseconds=1))
        return cls(outcomes, planned, round((anchor - span.began) / 1000, 1))


def delivered_items(log: CallLog) -> Counter[str]:
    """Return how often each notice was posted, by its item."""
    return Counter(str(entry.delivery["delivery"]).rsplit("/", 1)[-1] for entry in log.posts(ALERTS))


def _unmarked(log: CallLog, plan: KillPlan) -> int:
    """Return how many acceptances a lost answer, a late one's included, or a kill parted from their marker."""
    lost = {entry.seq for entry in log.posts(ALERTS) if entry.fault == ACCEPTED_AS_ERROR or not entry.answered}
    killed = {kill.acceptance for kill in plan.kills if kill.phase == "accepted"}
    return len(lost | killed) + plan.by_phase["answered"]


def judge(
    log: CallLog,
    checks: list[dict[str, str]],
    ticks: Ticks,
    plan: KillPlan,
    seconds: float,
    *,
    in_time: bool,
) -> Verdict:
    """Count what a run's logs show."""
    due = turns_down(checks)
    delivered = delivered_items(log)
    doubles = count_doubles(log.entries, ALERTS)
    outcomes = ticks.outcomes
    return Verdict(
        checks=len(checks),
        ticks_planned=ticks.planned,
        ticks_fired=outcomes[FireOutcome.FIRED],
        ticks_skipped=outcomes[FireOutcome.SKIPPED_OVERLAP] + outcomes[FireOutcome.SKIPPED_LEASE],
        ticks_missed=outcomes[FireOutcome.MISSED],
        ticks_failed=outcomes[FireOutcome.FAILED],
        began_after=ticks.began_after,
        board_posts=len(log.posts(STATUS)),
        board_edits=len(log.edits(STATUS)),
        notices_due=len(due),
        notices_delivered=len(delivered),
        duplicated=doubles.avoidable,
        duplicated_late=doubles.late,
        late_acceptances=sum(entry.late for entry in log.posts(ALERTS)),
        acceptances_unmarked=_unmarked(log, plan),
        lost=len(set(due) - delivered.keys()),
        kills=len(plan.kills),
        kills_by_phase=plan.by_phase,
        kills_at_board=plan.by_board_phase,
        seconds=round(seconds, 1),
        ended_in_time=in_time,
    )
