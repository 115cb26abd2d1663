"""Made-up figures: each demand on an unattended run fails alone, by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kizami.demo.supervisor import BOARD_PHASES, PHASES, KillPlan
from kizami.demo.verdict import Verdict

GOOD = Verdict(
    checks=4_476,
    ticks_planned=200,
    ticks_fired=90,
    ticks_skipped=100,
    ticks_missed=9,
    ticks_failed=1,
    began_after=1.0,
    board_posts=1,
    board_edits=100,
    notices_due=118,
    notices_delivered=118,
    duplicated=0,
    duplicated_late=2,
    late_acceptances=2,
    acceptances_unmarked=30,
    lost=0,
    kills=53,
    kills_by_phase=dict.fromkeys(PHASES, 10),
    kills_at_board=dict.fromkeys(BOARD_PHASES[:3], 1),
    seconds=200.0,
    ended_in_time=True,
)


@pytest.mark.parametrize("lookup", [True, False])
def test_a_run_that_meets_every_demand_holds(lookup: bool) -> None:
    verdict = GOOD if lookup else replace(GOOD, duplicated=30)
    assert (verdict.unmet(lookup=lookup), verdict.holds(lookup=lookup)) == ({}, True)


@pytest.mark.parametrize("lookup", [True, False])
@pytest.mark.parametrize(
    ("demand", "figures"),
    [
        ("time_limit", {"ended_in_time": False}),
        ("kills", {"kills": 49}),
        ("kills_by_phase", {"kills_by_phase": dict.fromkeys(PHASES, 11) | {"answered": 4}}),
        ("kills_by_phase", {"kills_by_phase": dict.fromkeys(PHASES[1:], 20)}),
        ("kills_at_board", {"kills_at_board": dict.fromkeys(BOARD_PHASES[:2], 1)}),
        ("kills_at_board", {"kills_at_board": dict.fromkeys(BOARD_PHASES[1:], 1)}),
        ("began_after", {"began_after": 16.0}),
        ("began_after", {"began_after": -1.0}),
        ("ticks", {"ticks_planned": 201}),
        ("ticks", {"ticks_missed": 10}),
        ("board_posts", {"board_posts": 0}),
        ("board_posts", {"board_posts": 2}),
        ("board_edits", {"board_edits": 99}),
        ("notices_due", {"notices_due": 117}),
        ("notices_delivered", {"notices_delivered": 117}),
        ("notices_delivered", {"notices_delivered": 119}),
        ("lost", {"lost": 1}),
        ("duplicated_late", {"duplicated_late": 3}),
    ],
)
def test_a_demand_that_is_not_met_fails_the_run_by_its_name(demand: str, figures: dict[str, Any], lookup: bool) -> None:
    verdict = replace(GOOD, duplicated=0 if lookup else 1, **figures)
    assert (list(verdict.unmet(lookup=lookup)), verdict.holds(lookup=lookup)) == ([demand], False)


@pytest.mark.parametrize(("lookup", "duplicated"), [(True, 1), (True, -1), (False, 0), (False, 31)])
def test_doubles_are_none_with_look_up_and_without_it_some_but_each_explained(lookup: bool, duplicated: int) -> None:
    assert list(replace(GOOD, duplicated=duplicated).unmet(lookup=lookup)) == ["duplicated"]


def test_what_fails_is_said_with_its_figure() -> None:
    assert replace(GOOD, duplicated=1).unmet(lookup=True) == {"duplicated": "1 posts doubled, none may be"}


def test_a_plan_kills_in_each_phase_equally_often_and_logs_where() -> None:
    plan = KillPlan.drawn(seed=1, rounds=10)
    assert plan.total == 53
    while plan.wanted:
        plan.count()
    assert (plan.total, plan.by_phase) == (53, dict.fromkeys(PHASES, 10))


@pytest.mark.parametrize(("seed", "parted"), [(1, "board_accepted"), (2, "board_answered")])
def test_a_plan_begins_at_the_boards_first_post(seed: int, parted: str) -> None:
    plan = KillPlan.drawn(seed, rounds=1)
    assert plan.phases[:3] == ["board_before_send", "board_sent", parted]
    assert sorted(plan.phases[3:]) == sorted(PHASES)


def test_the_seed_alone_decides_the_order_of_the_kills() -> None:
    assert KillPlan.drawn(1, 10).phases == KillPlan.drawn(1, 10).phases != KillPlan.drawn(2, 10).phases
