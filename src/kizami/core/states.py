"""The states of a job and the only arrows between them."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kizami.core.errors import WrongStateError

if TYPE_CHECKING:
    from collections.abc import Mapping


class JobState(StrEnum):
    """Where a job is; COMPLETED, FAILED, CANCELLED and STALLED are ends."""

    SCHEDULED = "SCHEDULED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    STALLED = "STALLED"


class Actor(StrEnum):
    """Who asks for a transition: a claimed job is moved by its performer's report or a takeover, not by operators."""

    PERFORMER = "performer"
    OPERATOR = "operator"
    OTHERS = "others"


_S: Final = JobState
_ARROWS: Final[Mapping[JobState, frozenset[JobState]]] = MappingProxyType(
    {
        _S.SCHEDULED: frozenset({_S.QUEUED, _S.CANCELLED}),
        _S.QUEUED: frozenset({_S.RUNNING, _S.COMPLETED, _S.FAILED, _S.SCHEDULED, _S.STALLED}),
        _S.RUNNING: frozenset({_S.COMPLETED, _S.FAILED, _S.SCHEDULED, _S.STALLED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset({_S.SCHEDULED}),
        _S.CANCELLED: frozenset(),
        _S.STALLED: frozenset({_S.SCHEDULED}),
    },
)
_CANCELLED_BY_REPORT: Final = frozenset({_S.QUEUED, _S.RUNNING})

ACTIVE: Final = frozenset({_S.QUEUED, _S.RUNNING})
OUTSTANDING: Final = frozenset({_S.SCHEDULED, _S.QUEUED, _S.RUNNING})
ENDED: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.STALLED})


def may_move(current: JobState, target: JobState, actor: Actor = Actor.OTHERS) -> bool:
    """Tell whether a job may go from one state to another when `actor` asks."""
    if actor is Actor.OPERATOR and current in ACTIVE:
        return False
    if target is JobState.CANCELLED and current in _CANCELLED_BY_REPORT:
        return actor is Actor.PERFORMER
    return target in _ARROWS[current]


def require_move(job_id: str, current: JobState, target: JobState, actor: Actor = Actor.OTHERS) -> None:
    """Raise WrongStateError unless the arrow exists."""
    if not may_move(current, target, actor):
        message = f"Job {job_id} is {current} and can't become {target}."
        raise WrongStateError(message, remedy=_remedy(current, target), job_id=job_id, state=str(current))


def _remedy(current: JobState, target: JobState) -> str:
    if current in ACTIVE:
        return "Wait for its end, or let the performer itself return a cancel."
    if target is JobState.SCHEDULED:
        return "Only FAILED and STALLED jobs can be retried; enqueue a new job instead."
    return "Only SCHEDULED jobs can be cancelled."
