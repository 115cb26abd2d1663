"""Random lives of one schedule beside a model that keeps every planned tick in a dictionary, one by one."""

from __future__ import annotations

from itertools import count, takewhile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kizami.core.timing import Timing, cron_timing, interval_timing
from kizami.store.protocol import FireOutcome, TickKind
from tests.conformance.planned import NAME, at_tick, defined, external, fire, ledger, one, register
from tests.conformance.whole_store import APP, StillClock
from tests.property.still_store import done, still_store

MINUTE_MS = 60_000
RULES: dict[str, Timing] = {
    "*/7": cron_timing("*/7 * * * *"),
    "*/20": cron_timing("*/20 * * * *"),
    "90 s": interval_timing(90_000),
    "10 min": interval_timing(600_000),
}
EVERY_MS = {"90 s": 90_000, "10 min": 600_000}
MINUTES = {"*/7": 7, "*/20": 20}


def ticks(name: str, anchor: int, after: int, until: int) -> list[int]:
    """Return the planned instants in (after, until] by trying them all."""
    if name in EVERY_MS:
        every = (anchor + number * EVERY_MS[name] for number in count(1))
        return [at for at in takewhile(lambda at: at <= until, every) if at > after]
    first = after // MINUTE_MS * MINUTE_MS
    minutes = range(first, until + 1, MINUTE_MS)
    return [at for at in minutes if at > after and at // MINUTE_MS % 60 % MINUTES[name] == 0]


class Life(RuleBasedStateMachine):
    """One schedule, its clock, its people and its code."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StillClock()
        self.store = still_store(self.clock)
        self.rule_name = "*/7"
        self.anchor = self.clock.now
        self.paused = False
        self.told: dict[int, FireOutcome] = {}
        self.rows: list[tuple[FireOutcome, int, int, int]] = []
        self.notes = 0
        self.plan = self.first_after(self.clock.now)
        self.version = self.register()

    def register(self) -> int:
        definition = defined(timing=RULES[self.rule_name], note=str(self.notes))
        return done(register(self.store, definition))[NAME]

    def first_after(self, at: int) -> int:
        return ticks(self.rule_name, self.anchor, at, at + self.anchor - min(at, self.anchor) + 2 * 3_600_000)[0]

    def settled(self) -> int:
        return max(self.told, default=0)

    def tell(self, outcome: FireOutcome, instants: list[int]) -> None:
        """Note what became of some ticks; none may have been noted before."""
        assert not self.told.keys() & set(instants)
        self.told |= dict.fromkeys(instants, outcome)
        if instants:
            self.rows.append((outcome, instants[0], instants[-1], len(instants)))

    def behind(self) -> list[int]:
        """Return the ticks of the present timing behind the plan that have passed."""
        floor = max(self.plan, self.anchor, self.settled())
        return ticks(self.rule_name, self.anchor, floor, self.clock.now)

    def is_due(self) -> bool:
        return self.plan <= self.clock.now

    @rule(ms=st.sampled_from([1, 30_000, MINUTE_MS, 7 * MINUTE_MS, 61 * MINUTE_MS, 300 * MINUTE_MS]))
    def time_passes(self, ms: int) -> None:
        self.clock.move(ms)

    @rule(ms=st.sampled_from([-90 * MINUTE_MS, -MINUTE_MS, -1, 1, 45 * MINUTE_MS]))
    def the_clock_is_set(self, ms: int) -> None:
        self.clock.step(ms)

    @rule(refusal=st.sampled_from([None, None, "no"]))
    def fire(self, refusal: str | None) -> None:
        record = done(fire(self.store, at_tick(self.plan, self.version, refusal=refusal)))
        if self.paused or not self.is_due():
            assert record.outcome is FireOutcome.STALE
            return
        outcome = FireOutcome.FIRED if refusal is None else FireOutcome.FAILED
        assert record.outcome is outcome
        behind = self.behind()
        self.tell(outcome, [self.plan])
        self.tell(FireOutcome.MISSED, behind)
        self.plan = self.first_after(max(self.clock.now, self.anchor, self.settled()))

    @rule(back=st.integers(0, 3))
    def an_old_scheduler_fires(self, back: int) -> None:
        """Act on a tick that is settled, with the present version: nothing happens."""
        if self.told and (old := sorted(self.told)[-1 - back % len(self.told)]) != self.plan:
            assert done(fire(self.store, at_tick(old, self.version))).outcome is FireOutcome.STALE
            acted = self.told[old] in (FireOutcome.FIRED, FireOutcome.FAILED)
            told = FireOutcome.DUPLICATE if acted else FireOutcome.OVERTAKEN
            assert done(external(self.store, old)).outcome is told

    @rule()
    def trigger(self) -> None:
        record = done(fire(self.store, at_tick(self.clock.now, self.version, TickKind.MANUAL)))
        assert record.outcome is FireOutcome.FIRED

    @rule()
    def pause(self) -> None:
        done(self.store.schedules.pause(APP, NAME))
        self.paused = True

    @rule()
    def resume(self) -> None:
        done(self.store.schedules.resume(APP, NAME))
        if self.paused:
            self.paused = False
            if self.is_due():
                self.tell(FireOutcome.PAUSED, [self.plan, *self.behind()])
            self.plan = self.first_after(max(self.clock.now, self.settled()))

    @rule()
    def rename(self) -> None:
        self.notes += 1
        version = self.register()
        assert version == self.version + 1
        self.version = version

    @rule(name=st.sampled_from(sorted(RULES)))
    def change_timing(self, name: str) -> None:
        changed = name != self.rule_name
        owed = changed and self.is_due() and not self.paused
        if owed:
            self.tell(FireOutcome.MISSED, self.behind())
        elif changed and self.is_due():
            self.tell(FireOutcome.PAUSED, [self.plan, *self.behind()])
        if changed:
            self.rule_name, self.anchor = name, self.clock.now
            self.plan = self.plan if owed else self.first_after(max(self.clock.now, self.settled()))
        version = self.register()
        assert version == self.version + changed
        self.version = version

    @invariant()
    def the_ledger_agrees(self) -> None:
        assert done(ledger(self.store)) == self.rows

    @invariant()
    def the_schedule_agrees(self) -> None:
        found = done(one(self.store))
        assert found.next_at == (None if self.paused else self.plan)
        outcomes = list(self.told.values())
        dropped = outcomes.count(FireOutcome.MISSED) + outcomes.count(FireOutcome.PAUSED)
        assert (found.fired_count, found.failed_count, found.missed_count) == (
            outcomes.count(FireOutcome.FIRED),
            outcomes.count(FireOutcome.FAILED),
            dropped,
        )

    @invariant()
    def each_job_is_one_fired_tick(self) -> None:
        lines = done(self.store.schedules.ledger(APP, NAME, 10_000))
        jobs = [line.job_id for line in lines if line.kind is TickKind.PLANNED and line.job_id]
        assert sorted(jobs) == sorted(f"send#0:{NAME}-{at}" for at, what in self.told.items() if what == "fired")

    def teardown(self) -> None:
        done(self.store.close())


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=40)
