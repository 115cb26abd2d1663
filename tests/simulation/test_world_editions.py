"""Rolling deploys, restarts and roll-backs: one code fires, the newest that runs, and each tick once."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kizami.core.errors import NotFoundError
from kizami.store.protocol import FireOutcome
from tests.simulation.editions import EVERY, GRACE, MINUTE_MS, SOME, WITH_SOME, Deployment, Job

MINUTE = timedelta(minutes=1)
PROCESSES = ("1a", "1b", "2a", "2b", "3a", "3b")


def codes(jobs: list[Job], schedule: str = EVERY) -> list[int]:
    return [job.code for job in jobs if job.schedule == schedule]


@pytest.mark.parametrize("restarts", [*permutations(["1a", "1b", "2a"])], ids="-".join)
def test_a_rolling_deploy_settles_on_the_newer_code_in_every_order_of_restarts(restarts: tuple[str, ...]) -> None:
    with Deployment() as deployment:
        for process in ("1a", "1b", "2a"):
            deployment.start(process)
        for process in restarts:
            deployment.start(process)
            deployment.run_for(timedelta(seconds=7))
        jobs = deployment.run_for(3 * MINUTE)
        assert codes(jobs) == [2, 2, 2]
        assert codes(jobs, SOME) == []


def test_an_old_process_that_restarts_says_once_that_it_is_superseded(caplog: pytest.LogCaptureFixture) -> None:
    with Deployment() as deployment:
        for process in ("1a", "2a", "1a"):
            caplog.clear()
            deployment.start(process)
            deployment.run_for(5 * MINUTE)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    stands_back = "this process fires none of its ticks while a worker of newer code lives"
    mine = "the definition of this process (version 1) is superseded by"
    assert [each for each in warnings if "superseded" in each] == [
        f"schedule report: {mine} a newer definition (version 2); {stands_back}",
        f"schedule extra: {mine} its removal (version 2); {stands_back}",
    ]


def test_an_old_process_that_runs_on_says_so_too(caplog: pytest.LogCaptureFixture) -> None:
    with Deployment() as deployment:
        deployment.start("1a")
        deployment.start("2a")
        deployment.run_for(5 * MINUTE)
    assert sum("superseded by a newer definition" in each.getMessage() for each in caplog.records) == 1
    told = [each for each in caplog.messages if each.startswith("app ") and "has other code in force" in each]
    assert len(told) == 1
    assert "process " in told[0]
    assert "If that is another program, give one of the two another name" in told[0]


def test_processes_of_one_code_do_not_fight() -> None:
    with Deployment() as deployment:
        for process in ("1a", "1b", "1c", "1a", "1c"):
            deployment.start(process)
            deployment.run_for(timedelta(seconds=20))
        jobs = deployment.run_for(2 * MINUTE)
        found = deployment.schedule()
        assert codes(jobs) == [1, 1]
        assert found is not None
        assert found.version == 1


def test_a_roll_back_that_kept_an_old_process_alive_costs_no_tick_but_time() -> None:
    """The newer code goes half a second before a tick: it is owed, and fired once the grace time is over."""
    with Deployment() as deployment:
        deployment.start("1a")
        deployment.start("2a")
        deployment.run_for(timedelta(seconds=29, milliseconds=500))
        deployment.stop("2a")
        jobs = deployment.run_for(GRACE)
        later = deployment.run_for(2 * MINUTE)
        found = deployment.schedule()
        assert (codes(jobs), codes(later)) == ([1], [1, 1])
        assert found is not None
        assert (found.version, found.missed_count) == (3, 0)


def test_a_roll_back_by_new_processes_of_old_code_is_in_force_at_once() -> None:
    with Deployment() as deployment:
        for process in ("1a", "2a"):
            deployment.start(process)
            deployment.stop(process)
        deployment.start("1b")
        jobs = deployment.run_for(2 * MINUTE)
        assert (codes(jobs), codes(jobs, SOME)) == ([1, 1], [1, 1])


def test_a_restart_of_the_only_newer_process_changes_no_definition() -> None:
    with Deployment() as deployment:
        deployment.start("1a")
        deployment.start("2a")
        deployment.stop("2a")
        deployment.run_for(GRACE / 2)
        deployment.start("2a")
        jobs = deployment.run_for(2 * MINUTE)
        found = deployment.schedule()
        assert codes(jobs) == [2, 2]
        assert found is not None
        assert found.version == 2


def test_other_clocks_and_people_fire_nothing_through_an_old_process(caplog: pytest.LogCaptureFixture) -> None:
    with Deployment() as deployment:
        old, new = deployment.start("1a"), deployment.start("2a")
        deployment.run_for(MINUTE)
        wait = deployment.world.wait
        assert wait(old.schedules.trigger(EVERY)).outcome is FireOutcome.SUPERSEDED
        assert "version 2 is stored, which is not this code" in caplog.messages[-1]
        with pytest.raises(NotFoundError):
            wait(old.schedules.trigger(SOME))
        assert wait(new.schedules.trigger(EVERY)).outcome is FireOutcome.FIRED


class Lives(RuleBasedStateMachine):
    """Any order of starts, stops and restarts, beside a model that knows the order in which the codes first ran."""

    def __init__(self) -> None:
        super().__init__()
        self.deployment = Deployment()
        self.deployment.__enter__()
        self.first_ran: list[int] = []

    @rule(process=st.sampled_from(PROCESSES))
    def start(self, process: str) -> None:
        self.deployment.start(process)
        if int(process[0]) not in self.first_ran:
            self.first_ran.append(int(process[0]))

    @precondition(lambda self: self.deployment.running)
    @rule(which=st.integers(0, len(PROCESSES) - 1))
    def stop(self, which: int) -> None:
        running = sorted(self.deployment.running, key=lambda process: -self.first_ran.index(int(process[0])))
        self.deployment.stop(running[which % len(running)])

    @rule(seconds=st.sampled_from([1, 20, 40, 130]))
    def time_passes(self, seconds: int) -> None:
        self.deployment.run_for(timedelta(seconds=seconds))

    def teardown(self) -> None:
        try:
            self.the_newest_code_fires()
            self.each_tick_is_accounted_for_once()
        finally:
            self.deployment.__exit__(None, None, None)

    @rule()
    def the_newest_code_fires(self) -> None:
        self.deployment.run_for(GRACE)
        jobs = self.deployment.run_for(3 * MINUTE)
        running = {int(process[0]) for process in self.deployment.running}
        newest = max(running, key=self.first_ran.index, default=None)
        assert codes(jobs) == ([] if newest is None else [newest] * 3)
        assert codes(jobs, SOME) == ([newest] * 3 if newest in WITH_SOME else [])

    def each_tick_is_accounted_for_once(self) -> None:
        """Codes came and went, but the schedule that all of them have lost no tick, and none ran twice."""
        done = [(job.schedule, job.at) for job in self.deployment.performed]
        assert len(done) == len(set(done))
        lines = self.deployment.ledger()
        if lines:
            first, last = min(each.planned_at for each in lines), max(each.planned_last_at for each in lines)
            assert sum(each.count for each in lines) == (last - first) // MINUTE_MS + 1


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=12, stateful_step_count=8)
