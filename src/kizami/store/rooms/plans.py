"""What becomes of a schedule's plan: on registration, redefinition, removal and resume, and after each tick.

Whatever moves a plan past ticks that came due writes them to the ledger, so that planned = fired + skipped + failed +
dropped at any time. A plan is always later than the last settled time, also after a step back of the wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kizami.core.timing import (
    count_between,
    decide_misfire,
    fingerprint,
    first_fire,
    latest_at_or_before,
    local_ms,
    next_after,
)
from kizami.store.protocol import FireOutcome, TickKind
from kizami.store.rooms.schedule_rows import readable, timing_of
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.core.timing import Timing
    from kizami.store.protocol import Fire, ScheduleDefinition
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("schedules")
_MISSED: Final = "no worker acted on them in time"


@dataclass(frozen=True, slots=True)
class PlanAfter:
    """The plan behind a tick, and the stretch of ticks that were dropped on the way to it."""

    next_at: EpochMs | None
    dropped: int = 0
    dropped_first: EpochMs | None = None
    dropped_last: EpochMs | None = None


def first_plan(moment: Moment, definition: ScheduleDefinition) -> dict[str, Any]:
    """Return the plan of a schedule that was never stored."""
    planned = first_fire(definition.timing, moment.now) if definition.driver == "inner" else None
    return {"now": moment.now, "planned_at": planned}


def new_plan(transaction: Transaction, moment: Moment, row: Row, definition: ScheduleDefinition) -> dict[str, Any]:
    """Return the plan of a redefined schedule; plan and phase stay unless the timing changed.

    A tick already due stays the plan, to be settled first; the old timing's ticks behind it are missed ones.
    """
    same = row["timing_fingerprint"] == fingerprint(definition.timing) and row["removed_at"] is None
    anchor = row["anchor_at"] if same else moment.now
    values: dict[str, Any] = {"now": moment.now, "anchor_at": anchor, "planned_at": row["planned_at"]}
    values["settled_local"] = row["settled_local"] if same else None
    if definition.driver == "external":
        drop_passed(transaction, moment, row, "the schedule's own clock was turned off before they were acted on")
        return values | {"planned_at": None}
    if same and row["planned_at"] is not None:
        return values
    if _passed(row, moment) and row["paused_at"] is None:
        _drop_behind(transaction, moment, row)
        return values
    settled_at = drop_passed(transaction, moment, row)
    return values | {"planned_at": next_after(definition.timing, max(moment.now, settled_at), anchor)}


def plan_by_other_zones(row: Row, definition: ScheduleDefinition, moment: Moment) -> dict[str, Any]:
    """Return the plan of an unchanged schedule by another edition of the time-zone database.

    It begins behind what was settled, so that a tick that the new rules put into the past still fires, and behind what
    the local clock showed then, so that no local time fires twice. A tick that is due is settled first: it stands for
    the first local time behind the settled ones, whenever that is by the new rules.
    """
    planned, settled_local = row["planned_at"], row["settled_local"]
    if planned is None:
        return {"planned_at": None, "settled_local": settled_local}
    after = max(row["settled_at"] or 0, row["registered_at"])
    at = _next_local(definition.timing, after, row["anchor_at"], settled_local)
    if planned <= moment.now:
        return {"planned_at": planned, "settled_local": local_ms(definition.timing, at)}
    return {"planned_at": at, "settled_local": settled_local}


def _next_local(timing: Timing, after: EpochMs, anchor: EpochMs, settled_local: int | None) -> EpochMs:
    """Return the next planned instant whose local time is behind the settled ones."""
    at = next_after(timing, after, anchor)
    while settled_local is not None and local_ms(timing, at) <= settled_local:
        at = next_after(timing, at, anchor)
    return at


def plan_after_pause(transaction: Transaction, moment: Moment, row: Row) -> EpochMs | None:
    """Drop what passed; return the first boundary strictly after now, None where the inner clock is off."""
    settled_at = drop_passed(transaction, moment, row)
    if row["planned_at"] is None:
        return None
    return next_after(timing_of(row), max(moment.now, settled_at), row["anchor_at"])


def plan_after_tick(row: Row, fire: Fire, moment: Moment) -> PlanAfter:
    """Return the plan behind a settled tick: the next boundary after now, the passed ones between are dropped."""
    timing, anchor, planned, at = timing_of(row), row["anchor_at"], row["planned_at"], fire.scheduled_at
    if fire.kind is TickKind.PLANNED:
        floor = _floor(row)
        decided = decide_misfire(timing, floor, max(moment.now, floor), anchor)
        following = _next_local(timing, max(moment.now, floor), anchor, row["settled_local"])
        return PlanAfter(following, decided.dropped, decided.dropped_first, decided.dropped_last)
    if planned is None or planned > at:
        return PlanAfter(planned)
    following = _next_local(timing, at, anchor, row["settled_local"])
    if planned == at:
        return PlanAfter(following)
    dropped, last = _stretch(row, at - 1)
    return PlanAfter(following, dropped, planned, last)


def drop_passed(transaction: Transaction, moment: Moment, row: Row, reason: str = _MISSED) -> EpochMs:
    """Settle every tick that is due as dropped; return the last settled time."""
    if not _passed(row, moment):
        return int(row["settled_at"] or 0)
    # Of a timing that can't be read, only the plan itself is known.
    dropped, last = _stretch(row, moment.now)
    _drop(transaction, moment, row, PlanAfter(None, dropped, row["planned_at"], last), reason)
    return max(last, row["settled_at"] or 0)


def record_missed(transaction: Transaction, moment: Moment, row: Row, plan: PlanAfter, reason: str = _MISSED) -> None:
    """Write one range row for the ticks that a plan drops, if there are any."""
    if not plan.dropped:
        return
    paused = row["paused_at"] is not None
    values = {
        "app": row["app"],
        "schedule": row["name"],
        "kind": str(TickKind.PLANNED),
        "outcome": str(FireOutcome.PAUSED if paused else FireOutcome.MISSED),
        "planned_at": plan.dropped_first,
        "planned_last_at": plan.dropped_last,
        "count": plan.dropped,
        "now": moment.now,
        "by": "scheduler",
        "job_id": None,
        "reason": "paused" if paused else reason,
        "version": row["version"],
    }
    transaction.execute(SQL["record"], values)


def _drop_behind(transaction: Transaction, moment: Moment, row: Row) -> None:
    """Drop what the old timing planned between its due tick, which stays owed, and now."""
    timing, floor = readable(row), _floor(row)
    if isinstance(timing, str):
        return
    decided = decide_misfire(timing, floor, max(moment.now, floor), row["anchor_at"])
    if decided.dropped:
        plan = PlanAfter(None, decided.dropped, decided.dropped_first, decided.dropped_last)
        _drop(transaction, moment, row, plan, _MISSED)


def _drop(transaction: Transaction, moment: Moment, row: Row, plan: PlanAfter, reason: str) -> None:
    record_missed(transaction, moment, row, plan, reason)
    values = {"app": row["app"], "name": row["name"], "settled_at": plan.dropped_last, "dropped": plan.dropped}
    transaction.execute(SQL["drop"], values | {"settled_local": settled_local(row, plan.dropped_last)})


def settled_local(row: Row, at: EpochMs | None) -> int | None:
    """Return what a schedule's local clock shows at a tick that is settled; None where it can't be read."""
    timing = readable(row)
    return None if isinstance(timing, str) or at is None else local_ms(timing, at)


def _passed(row: Row, moment: Moment) -> bool:
    return row["planned_at"] is not None and row["planned_at"] <= moment.now


def _floor(row: Row) -> EpochMs:
    """Return the time behind which the present timing's further ticks lie.

    That is the plan itself, except where the plan is a due tick of an older timing: the present one has planned nothing
    until its anchor, and what is settled stays settled.
    """
    return int(max(row["planned_at"], row["anchor_at"], row["settled_at"] or 0))


def _stretch(row: Row, until: EpochMs) -> tuple[int, EpochMs]:
    """Return how many ticks the plan and those behind it are, up to an instant, and the last of them."""
    timing, anchor, planned = readable(row), row["anchor_at"], row["planned_at"]
    if isinstance(timing, str):
        return 1, planned
    behind = count_between(timing, _floor(row), until, anchor)
    last = latest_at_or_before(timing, until, anchor) if behind else None
    return 1 + behind, planned if last is None else last
