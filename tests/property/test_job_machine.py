"""Random operations of three workers, operators and clocks, beside a model that keeps a plain list of jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kizami.core.errors import WrongStateError
from kizami.core.options import FirstDue, Guarantee, JobOptions
from kizami.core.policy import Policy, PolicyChanges, Rate
from kizami.core.states import Actor, JobState, may_move
from kizami.store.protocol import (
    BindingDeclaration,
    Claim,
    ClaimedJob,
    Heartbeat,
    JobFilter,
    NewJob,
    Outcome,
    Report,
    Worker,
)
from tests.conformance.whole_store import APP, BINDING, StillClock, process
from tests.property.still_store import done, still_store

TIMEOUT_MS, GRACE_MS = 5_000, 1_000
CONCURRENCY, TOKENS, REFILL_MS = 5, 4, 3_000
DECLARED = BindingDeclaration(
    BINDING,
    Policy(
        concurrency=CONCURRENCY,
        rate=Rate(TOKENS, timedelta(milliseconds=REFILL_MS)),
        reaper_grace=timedelta(milliseconds=GRACE_MS),
    ),
)
LIMITS: list[PolicyChanges | None] = [
    None,
    {"concurrency": 2},
    {"concurrency": 9, "rate": None},
    {"per_key_concurrency": 2, "rate": None},
    {"per_key_concurrency": 3, "aging_interval": None},
]
ONCE = st.sampled_from([False, False, True])
ENDS = {
    "completed": (JobState.COMPLETED, Outcome.COMPLETED),
    "again": (JobState.SCHEDULED, Outcome.FAILED),
    "failed": (JobState.FAILED, Outcome.FAILED),
    "snoozed": (JobState.SCHEDULED, Outcome.SNOOZED),
    "cancelled": (JobState.CANCELLED, Outcome.CANCELLED),
}


@dataclass
class ModelJob:
    """What the model knows of a job."""

    name: str
    number: int
    priority: int
    once: bool
    max_attempts: int
    first_due: int
    due_at: int
    ready: bool
    key: str | None
    state: JobState = JobState.SCHEDULED
    attempt: int = 0
    allowed: int = 0
    claim: int = 0
    worker: str | None = None
    silent_at_boot: int = 0
    may_run_again: bool = True
    history: list[JobState] = field(default_factory=lambda: [JobState.SCHEDULED])

    def move(self, state: JobState, actor: Actor = Actor.OTHERS) -> None:
        assert may_move(self.state, state, actor)
        self.state = state
        self.history.append(state)
        if state not in (JobState.QUEUED, JobState.RUNNING):
            self.worker = None

    def points(self, now: int) -> Fraction:
        """Return the priority after aging: a minute of waiting is worth one point."""
        return self.priority + Fraction(now - self.first_due, 60_000)


class Workers(RuleBasedStateMachine):
    """Three workers at one table, under a policy that operators change."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StillClock()
        self.store = still_store(self.clock)
        self.jobs: dict[str, ModelJob] = {}
        self.handed: list[ClaimedJob] = []
        self.landed: list[Report] = []
        self.claims: dict[str, int] = {}
        self.policy = DECLARED.policy
        self.paused = False
        self.tokens = Fraction(TOKENS)
        self.refilled_at_boot = self.clock.boot
        self.workers = ["w1", "w2", "w3"]
        for worker in self.workers:
            self.employ(worker)

    def employ(self, worker: str) -> None:
        done(self.store.workers.register(Worker(worker, APP, process(), (BINDING,))))

    @rule(
        data=st.data(),
        count=st.integers(1, 3),
        delay_ms=st.sampled_from([0, 0, 0, 1, 7_000]),
        key=st.sampled_from([None, "a", "a", "b"]),
    )
    def enqueue(self, data: st.DataObject, count: int, delay_ms: int, key: str | None) -> None:
        """Add jobs that share key and due time."""
        for _ in range(count):
            self.add(data.draw(st.integers(-3, 3)), data.draw(st.integers(1, 3)), delay_ms, key, once=data.draw(ONCE))

    def add(self, priority: int, max_attempts: int, delay_ms: int, key: str | None, *, once: bool) -> None:
        number, now = len(self.jobs), self.clock.now
        guarantee = Guarantee.AT_MOST_ONCE if once else Guarantee.AT_LEAST_ONCE
        options = JobOptions(
            priority, max_attempts, timeout_ms=TIMEOUT_MS, guarantee=guarantee, concurrency_key=key
        )  # fmt: skip
        job = NewJob(APP, BINDING, f"j{number}", "{}", options, FirstDue(delay_ms=delay_ms), declaration=DECLARED)
        (answer,) = done(self.store.jobs.enqueue([job]))
        due_at = now + delay_ms
        made = ModelJob(answer.job_id, number, priority, once, max_attempts, due_at, due_at, delay_ms == 0, key)
        made.allowed = max_attempts
        self.jobs[made.name] = made

    @property
    def running(self) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.worker is not None]

    @property
    def due(self) -> list[ModelJob]:
        waiting = (job for job in self.jobs.values() if job.state is JobState.SCHEDULED)
        return [job for job in waiting if job.ready or job.due_at <= self.clock.now]

    def refill(self) -> None:
        """Fill the bucket by the boot clock's time since it was last looked at."""
        passed, self.refilled_at_boot = self.clock.boot - self.refilled_at_boot, self.clock.boot
        self.tokens = min(Fraction(TOKENS), self.tokens + Fraction(passed * TOKENS, REFILL_MS))

    def place(self, job: ModelJob) -> tuple[Fraction, int, int]:
        """Return a job's place: points after aging, or strictly priority and then due time."""
        if self.policy.aging_interval is None:
            return Fraction(-job.priority), job.first_due, job.number
        return -job.points(self.clock.now), 0, job.number

    def first(self, limit: int) -> list[ModelJob]:
        """Walk all due jobs in order and take each that nothing forbids."""
        self.refill()
        running, of_key = len(self.running), Counter(job.key for job in self.running)
        taken: list[ModelJob] = []
        for job in sorted(self.due, key=self.place):
            no_token = self.policy.rate is not None and self.tokens - len(taken) < 1
            if self.paused or no_token or running >= self.policy.concurrency or len(taken) == limit:
                break
            if job.key is not None and of_key[job.key] >= self.policy.per_key_concurrency:
                continue
            running += 1
            of_key[job.key] += 1
            taken.append(job)
        return taken

    @rule(worker=st.integers(0, 2), limit=st.integers(1, 4))
    def claim(self, worker: int, limit: int) -> None:
        worker_id = self.workers[worker]
        expected = self.first(limit)
        self.tokens -= 0 if self.policy.rate is None else len(expected)
        for job in self.due:
            job.ready = True  # whatever the wall clock does from here on
        taken = done(self.store.jobs.claim(Claim(APP, worker_id, (BINDING,), limit)))
        assert [job.job_id for job in taken] == [job.name for job in expected]
        for claimed, job in zip(taken, expected, strict=True):
            assert job.may_run_again
            assert claimed.claim > self.claims.get(job.name, 0)
            self.claims[job.name] = claimed.claim
            job.move(JobState.QUEUED)
            job.attempt += 1
            job.claim, job.worker = claimed.claim, worker_id
            job.silent_at_boot = self.clock.boot + TIMEOUT_MS + GRACE_MS
            assert claimed.attempt == job.attempt
            self.handed.append(claimed)

    @rule(override=st.sampled_from(LIMITS))
    def configure(self, override: PolicyChanges | None) -> None:
        """Change the policy as an operator does; without a rate, the bucket fills unseen."""
        if not self.jobs:
            return
        done(self.store.bindings.configure(APP, BINDING, override))
        self.policy = DECLARED.policy.changed(override or {})

    @rule(paused=st.booleans())
    def pause(self, *, paused: bool) -> None:
        if self.jobs:
            done((self.store.bindings.pause if paused else self.store.bindings.resume)(APP, BINDING))
            self.paused = paused

    def is_current(self, claimed: ClaimedJob) -> bool:
        job = self.jobs[claimed.job_id]
        return job.worker is not None and job.claim == claimed.claim

    @precondition(lambda self: self.handed)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        claimed = data.draw(st.sampled_from(self.handed))
        job = self.jobs[claimed.job_id]
        if not job.once:
            return
        expected = self.is_current(claimed) and job.state is JobState.QUEUED
        assert done(self.store.jobs.start(claimed.key, claimed.claim)) is expected
        if expected:
            job.move(JobState.RUNNING)
            job.may_run_again = False

    @precondition(lambda self: self.handed)
    @rule(data=st.data(), end=st.sampled_from(sorted(ENDS)))
    def report(self, data: st.DataObject, end: str) -> None:
        self.report_on(data.draw(st.sampled_from(self.handed)), end)

    def report_on(self, claimed: ClaimedJob, end: str) -> None:
        job = self.jobs[claimed.job_id]
        state, outcome = ENDS[end]
        at = len(self.landed) + 1  # no two reports are the same
        one = Report(
            claimed.key, claimed.claim, state, outcome, result=str(at), started_at=at, ended_at=at,
            uses_attempt=end != "snoozed",
        )  # fmt: skip
        expected = self.is_current(claimed)
        assert done(self.store.jobs.report([one])) == (expected,)
        if expected:
            self.landed.append(one)
            job.may_run_again = True  # a reported end may be followed by another attempt
            job.move(state, Actor.PERFORMER)
            job.attempt -= end == "snoozed"
            job.due_at, job.ready = self.clock.now, True

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from(sorted(ENDS)))
    def end_one(self, data: st.DataObject, end: str) -> None:
        """Report on a job that runs now: of all that were ever handed out, most have ended."""
        self.report_on(data.draw(st.sampled_from([each for each in self.handed if self.is_current(each)])), end)

    @precondition(lambda self: self.landed)
    @rule(data=st.data())
    def report_again(self, data: st.DataObject) -> None:
        """Repeat a report whose answer got lost: accepted, and nothing changes (the invariant sees to it)."""
        assert done(self.store.jobs.report([data.draw(st.sampled_from(self.landed))])) == (True,)

    @precondition(lambda self: self.handed)
    @rule(data=st.data(), alive_ms=st.integers(0, 10_000))
    def heartbeat(self, data: st.DataObject, alive_ms: int) -> None:
        claimed = data.draw(st.sampled_from(self.handed))
        expected = self.is_current(claimed)
        assert done(self.store.jobs.heartbeat([Heartbeat(claimed.key, claimed.claim, alive_ms)])) == (expected,)
        if expected:
            job = self.jobs[claimed.job_id]
            job.silent_at_boot = max(job.silent_at_boot, self.clock.boot + alive_ms)

    @rule(ms=st.sampled_from([1, 500, 4_000, 6_001, 70_000]))
    def move(self, ms: int) -> None:
        self.clock.move(ms)

    @rule(ms=st.sampled_from([-3_600_000, -1, 1, 3_600_000]))
    def step(self, ms: int) -> None:
        self.clock.step(ms)

    def take_over(self, job: ModelJob) -> None:
        spent = JobState.SCHEDULED if job.attempt < job.allowed else JobState.FAILED
        job.move(JobState.STALLED if job.once else spent)
        job.due_at, job.ready = self.clock.now, True

    @rule(trusted_ms=st.sampled_from([0, TIMEOUT_MS + GRACE_MS - 1, TIMEOUT_MS + GRACE_MS]))
    def reap(self, trusted_ms: int) -> None:
        silent = [job for job in self.jobs.values() if job.worker and self.clock.boot > job.silent_at_boot]
        expected = silent if trusted_ms >= TIMEOUT_MS + GRACE_MS else []
        taken = done(self.store.jobs.reap(APP, trusted_ms))
        assert {one.job_id for one in taken} == {job.name for job in expected}
        for job in expected:
            self.take_over(job)

    @rule(worker=st.integers(0, 2))
    def die(self, worker: int) -> None:
        """Bury a worker; another process start takes its seat."""
        dead = self.workers[worker]
        taken = done(self.store.workers.bury(dead))
        held = [job for job in self.jobs.values() if job.worker == dead]
        assert {one.job_id for one in taken} == {job.name for job in held}
        for job in held:
            self.take_over(job)
        self.workers[worker] = f"{dead}+"
        self.employ(self.workers[worker])

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        if job.state not in (JobState.FAILED, JobState.STALLED):
            with pytest.raises(WrongStateError):
                done(self.store.jobs.retry(APP, job.name))
            return
        done(self.store.jobs.retry(APP, job.name))
        job.move(JobState.SCHEDULED)
        job.allowed = job.attempt + job.max_attempts
        job.due_at, job.ready, job.may_run_again = self.clock.now, True, True

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        if job.state is not JobState.SCHEDULED:
            with pytest.raises(WrongStateError):
                done(self.store.jobs.cancel(APP, job.name))
            return
        done(self.store.jobs.cancel(APP, job.name))
        job.move(JobState.CANCELLED)

    @invariant()
    def the_store_agrees(self) -> None:
        """No job is lost or invented, and each is where the model has it."""
        found = done(self.store.jobs.list(JobFilter(APP, limit=200))).jobs
        stored = {job.job_id: (job.state, job.attempt, job.attempts_allowed, job.worker_id) for job in found}
        assert stored == {job.name: (job.state, job.attempt, job.allowed, job.worker) for job in self.jobs.values()}

    @invariant()
    def the_counts_agree(self) -> None:
        """Compare what is kept counted with what counting gives, by state and by what jobs wait for."""
        states = Counter(job.state for job in self.jobs.values())
        assert done(self.store.jobs.count_by_state(APP)).get(BINDING, {}) == dict(states)
        for diagnosis in done(self.store.bindings.diagnose(APP)):
            assert diagnosis.active == len(self.running)
            assert sum(diagnosis.waiting.values()) == states[JobState.SCHEDULED]
            assert min(diagnosis.waiting.values()) >= 0

    @invariant()
    def no_start_is_overlooked(self) -> None:
        """Whoever could start something is told that a claim is worth a try."""
        horizon = done(self.store.jobs.horizon(APP, (BINDING,)))
        assert horizon.ready or not self.first(1)

    def teardown(self) -> None:
        done(self.store.close())


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=60, stateful_step_count=40)
