from __future__ import annotations

import pytest

from kizami.core.backoff import Backoff
from kizami.core.errors import InvalidInputError, WrongStateError
from kizami.core.options import Guarantee
from kizami.core.outcomes import after_failure, after_unreported_end
from kizami.core.states import ACTIVE, ENDED, OUTSTANDING, Actor, JobState, may_move, require_move
from kizami.store.protocol import JobFilter

ARROWS = """
SCHEDULED QUEUED
SCHEDULED CANCELLED
QUEUED RUNNING
QUEUED COMPLETED
QUEUED FAILED
QUEUED SCHEDULED
QUEUED STALLED
RUNNING COMPLETED
RUNNING FAILED
RUNNING SCHEDULED
RUNNING STALLED
FAILED SCHEDULED
STALLED SCHEDULED
"""
ALLOWED = {tuple(line.split()) for line in ARROWS.split("\n") if line}
ONLY_BY_REPORT = {("QUEUED", "CANCELLED"), ("RUNNING", "CANCELLED")}


@pytest.mark.parametrize("current", JobState)
@pytest.mark.parametrize("target", JobState)
def test_a_job_moves_along_the_arrows_and_nowhere_else(current: JobState, target: JobState) -> None:
    arrow = (str(current), str(target))
    assert may_move(current, target, Actor.OTHERS) is (arrow in ALLOWED)
    assert may_move(current, target, Actor.OPERATOR) is (arrow in ALLOWED and current not in ACTIVE)
    assert may_move(current, target, Actor.PERFORMER) is (arrow in ALLOWED | ONLY_BY_REPORT)


@pytest.mark.parametrize("current", JobState)
@pytest.mark.parametrize("target", JobState)
def test_a_refused_move_says_what_to_do(current: JobState, target: JobState) -> None:
    if may_move(current, target):
        require_move("send#0:a", current, target)
        return
    with pytest.raises(WrongStateError, match=f"send#0:a is {current} and can't become {target}") as caught:
        require_move("send#0:a", current, target)
    assert caught.value.remedy


def test_every_state_is_outstanding_or_ended() -> None:
    assert set(JobState) == OUTSTANDING | ENDED
    assert not OUTSTANDING & ENDED
    assert OUTSTANDING - {JobState.SCHEDULED} == ACTIVE


@pytest.mark.parametrize(
    ("attempt", "allowed", "state", "delay_ms"),
    [(1, 1, JobState.FAILED, 0), (1, 2, JobState.SCHEDULED, 1_000), (2, 2, JobState.FAILED, 0)],
)
def test_a_failure_is_retried_until_the_attempts_are_used_up(
    attempt: int, allowed: int, state: JobState, delay_ms: int
) -> None:
    decided = after_failure(attempt, allowed, 0, Backoff(jitter=False), 0.0)
    assert (decided.state, decided.delay_ms) == (state, delay_ms)


@pytest.mark.parametrize("guarantee", Guarantee)
@pytest.mark.parametrize("started", [True, False])
def test_only_a_started_at_most_once_job_stalls(guarantee: Guarantee, *, started: bool) -> None:
    stalls = started and guarantee is Guarantee.AT_MOST_ONCE
    assert after_unreported_end(guarantee, started=started) is (JobState.STALLED if stalls else JobState.SCHEDULED)


def test_a_filter_takes_states_in_any_case_and_refuses_what_is_none() -> None:
    wanted = JobFilter(states=("completed", "Failed", JobState.STALLED))  # type: ignore[arg-type]  # texts work too
    assert wanted.states == (JobState.COMPLETED, JobState.FAILED, JobState.STALLED)
    with pytest.raises(InvalidInputError, match="'nope' is no state of a job") as caught:
        JobFilter(states=("nope",))  # type: ignore[arg-type]  # the mistake
    assert "SCHEDULED, QUEUED" in str(caught.value.remedy)
