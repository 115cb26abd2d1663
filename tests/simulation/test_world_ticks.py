"""Ticks in virtual time: each is one job, whatever clocks, people and payload functions do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kizami import Kizami, Tick
from kizami.core.errors import NotFoundError
from kizami.core.states import JobState
from kizami.core.timing import cron_timing, fires
from kizami.store.protocol import FireOutcome, JobFilter
from kizami.testing.world import World

MINUTE_MS = 60_000


def noting(app: Kizami, name: str, cron: str, time_zone: str = "UTC") -> list[int]:
    """Add a schedule whose job notes its tick, and return the notes."""
    ticks: list[int] = []

    async def note(tick: Tick) -> None:
        ticks.append(tick.scheduled_at_ms)

    performer = app.performer(binding=name.replace("-", "_"))(note)
    app.schedule(name, performer, cron=cron, time_zone=time_zone)
    return ticks


def test_each_tick_of_a_year_with_daylight_saving_is_one_job() -> None:
    app = Kizami()
    daily = noting(app, "daily", "30 2 * * *", "America/New_York")
    hourly = noting(app, "six-hourly", "0 */6 * * *", "Europe/Berlin")
    with World(app, start="2026-01-01T00:00:30") as world:
        begin = world.clock.now_ms()
        world.run_until("2027-01-01T00:00:30")
        end = world.clock.now_ms()
    for ticks, timing in (
        (daily, cron_timing("30 2 * * *", "America/New_York")),
        (hourly, cron_timing("0 */6 * * *", "Europe/Berlin")),
    ):
        plan = fires(timing, begin, begin)
        assert ticks == [at for at in (next(plan) for _ in ticks) if at <= end]
        assert next(plan) > end
    assert len(daily) == 364  # 02:30 doesn't exist on 8 March
    assert len(hourly) == 4 * 365


def test_the_same_seed_makes_the_same_world() -> None:
    def ledger(seed: int) -> list[tuple[int, int, str | None]]:
        app = Kizami()
        noting(app, "often", cron="*/7 * * * *")
        with World(app, seed=seed) as world:
            world.run_for(timedelta(days=1))
            lines = world.wait(app.schedules.ledger(limit=1_000))
        return [(line.planned_at, line.acted_at, line.by) for line in lines]

    assert ledger(1) == ledger(1)
    assert ledger(1) != ledger(2)


def test_a_wall_clock_stepped_back_doubles_no_tick_and_costs_no_job_its_worker() -> None:
    """B026: an hour back, while a job runs; the schedule is silent until its stored plan."""
    app = Kizami()
    ticks = noting(app, "five", cron="*/5 * * * *")
    ends: list[str] = []

    @app.performer(timeout=timedelta(minutes=10))
    async def slow() -> None:
        await app.runtime.clock.sleep(300)
        ends.append("slow")

    with World(app, start="2026-03-01T11:40:30", settings=app.settings) as world:
        world.run_until("2026-03-01T12:00:25")
        before = list(ticks)
        job_id = world.wait(slow.enqueue())
        world.run_for(timedelta(seconds=5))
        world.step_wall_clock(timedelta(hours=-1))
        world.run_for(timedelta(minutes=59))
        assert ticks == before
        world.run_until("2026-03-01T12:05:02")
        job = world.wait(app.jobs.get(job_id))
    assert len(before) == len(set(before)) == 4
    assert ticks == [*before, before[-1] + 5 * MINUTE_MS]
    assert job is not None
    assert (job.state, job.attempt, ends) == (JobState.COMPLETED, 1, ["slow"])


def test_a_wall_clock_stepped_forward_fires_the_oldest_tick_once_and_counts_the_rest() -> None:
    """B026, the other way: a day ahead, while a job runs; no healthy worker is reaped."""
    app = Kizami()
    ticks = noting(app, "five", cron="*/5 * * * *")

    @app.performer(timeout=timedelta(seconds=30))
    async def steady() -> None:
        await app.runtime.clock.sleep(25)

    with World(app, start="2026-03-01T12:00:30", settings=app.settings) as world:
        job_id = world.wait(steady.enqueue())
        world.run_for(timedelta(seconds=5))
        world.step_wall_clock(timedelta(days=1))
        world.run_for(timedelta(seconds=2))
        assert ticks == [at_ms("2026-03-01T12:05")]
        world.run_for(timedelta(minutes=10))
        job, stored = world.wait(app.jobs.get(job_id)), world.wait(app.schedules.get("five"))
    assert ticks[1:] == [at_ms("2026-03-02T12:05"), at_ms("2026-03-02T12:10")]
    assert stored.missed_count == 287
    assert job is not None
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)


def test_a_payload_function_that_raises_or_hangs_settles_its_tick_and_delays_nobody() -> None:
    app = Kizami()
    done: list[tuple[str, float]] = []

    @app.performer
    async def take(payload: str) -> None:
        done.append((payload, app.runtime.clock.boot_ms() / 1000))

    def broken(tick: Tick) -> str:
        message = f"no data for {tick.scheduled_at:%H:%M}"
        raise ValueError(message)

    async def hanging(_: Tick) -> str:
        await app.runtime.clock.sleep(3600)
        return "late"

    def wrong(_: Tick) -> int:
        return 7

    for name, payload in (("broken", broken), ("hanging", hanging), ("wrong", wrong), ("well", lambda _: "well")):
        app.schedule(name, take, payload=payload, cron="* * * * *")
    with World(app, settings=app.settings) as world:
        world.run_for(timedelta(seconds=119))
        ledger = {name: world.wait(app.schedules.ledger(name)) for name in ("broken", "hanging", "wrong", "well")}
    assert [name for name, lines in ledger.items() if len(lines) != 1] == []
    assert {name: lines[0].outcome for name, lines in ledger.items()} == {
        "broken": FireOutcome.FAILED,
        "hanging": FireOutcome.FAILED,
        "wrong": FireOutcome.FAILED,
        "well": FireOutcome.FIRED,
    }
    assert "no data for 00:01" in (ledger["broken"][0].reason or "")
    assert "longer than 10000 ms" in (ledger["hanging"][0].reason or "")
    assert "payload" in (ledger["wrong"][0].reason or "")
    assert len(done) == 1
    assert done[0][1] < 60.5


def test_a_tick_whose_previous_job_has_not_ended_is_skipped_and_asks_no_payload() -> None:
    app = Kizami()
    asked: list[int] = []

    @app.performer(timeout=timedelta(minutes=5))
    async def slow(payload: int) -> int:
        await app.runtime.clock.sleep(150)
        return payload

    def payload(tick: Tick) -> int:
        asked.append(tick.scheduled_at_ms)
        return 1

    app.schedule("slow", slow, payload=payload, cron="* * * * *")
    with World(app) as world:
        world.run_for(timedelta(seconds=245))
        outcomes = [line.outcome for line in reversed(world.wait(app.schedules.ledger("slow")))]
    assert outcomes == [
        FireOutcome.FIRED,
        FireOutcome.SKIPPED_OVERLAP,
        FireOutcome.SKIPPED_OVERLAP,
        FireOutcome.FIRED,
    ]
    assert len(asked) == 2


def test_two_workers_on_one_store_fire_each_tick_once() -> None:
    ticks: list[int] = []

    def copy() -> Kizami:
        app = Kizami()

        @app.scheduled("minutely", cron="* * * * *")
        async def minutely(tick: Tick) -> None:
            ticks.append(tick.scheduled_at_ms)

        return app

    first, second = copy(), copy()
    with World(first, second) as world:
        world.run_for(timedelta(hours=3, seconds=1))
        jobs = world.wait(first.jobs.list(JobFilter(first.name, limit=200))).jobs
    assert ticks == [at_ms("2026-01-01T00:00") + n * MINUTE_MS for n in range(1, 181)]
    assert len(jobs) == 180


def test_a_superseded_definition_neither_fires_nor_registers_again() -> None:
    old, new = Kizami(), Kizami()
    old_ticks = noting(old, "report", cron="*/10 * * * *")
    removed = noting(old, "removed", cron="*/10 * * * *")
    new_ticks = noting(new, "report", cron="*/15 * * * *")
    with World(old, new) as world:  # the new code registers last
        world.run_for(timedelta(hours=1, seconds=1))
        stored = world.wait(new.schedules.list())
    assert removed == []
    assert [each.name for each in stored] == ["report"]
    assert stored[0].version == 2
    # Both workers perform the binding's jobs, but only ticks of the new plan exist.
    plan = [at_ms("2026-01-01T00:00") + n * 15 * MINUTE_MS for n in range(1, 5)]
    assert sorted(old_ticks + new_ticks) == plan


def test_a_trigger_by_old_code_does_not_bring_back_what_newer_code_removed() -> None:
    old, new = Kizami(), Kizami()
    noting(old, "removed", cron="*/10 * * * *")
    noting(new, "report", cron="*/15 * * * *")
    with World(old, new) as world:  # the new code registers last
        with pytest.raises(NotFoundError, match="no schedule removed"):
            world.wait(old.schedules.trigger("removed"))
        assert [each.name for each in world.wait(new.schedules.list())] == ["report"]


def test_what_passes_during_a_pause_is_dropped_and_a_trigger_fires_all_the_same() -> None:
    """B028: no fire at the resume; the next is the first boundary after it."""
    app = Kizami()
    ticks = noting(app, "nightly", cron="20 3 * * *", time_zone="Europe/Berlin")
    with World(app, start="2026-05-01T02:10", time_zone="Europe/Berlin") as world:
        world.wait(app.schedules.pause("nightly"))
        world.run_until("2026-05-04T09:35")
        assert ticks == []
        fired = world.wait(app.schedules.trigger("nightly", by="alice"))
        world.run_for(timedelta(seconds=1))
        assert ticks == [fired.planned_at]
        world.wait(app.schedules.resume("nightly"))
        world.run_until("2026-05-05T03:19")
        assert len(ticks) == 1
        world.run_until("2026-05-05T03:21")
        ledger = world.wait(app.schedules.ledger("nightly"))
    assert ticks[1:] == [at_ms("2026-05-05T01:20")]
    assert [(line.outcome, line.count) for line in ledger] == [
        (FireOutcome.FIRED, 1),
        (FireOutcome.PAUSED, 4),
        (FireOutcome.FIRED, 1),
    ]
    assert fired.job_id is not None
    assert fired.job_id.endswith("-1-manual")


def test_after_downtime_the_oldest_tick_fires_once_and_the_rest_are_counted() -> None:
    app = Kizami()
    ticks = noting(app, "hourly", cron="0 * * * *")
    with World(app) as world:
        world.run_for(timedelta(minutes=30))
        world.stop(app)
        world.run_for(timedelta(hours=5))
        world.start(app)
        world.run_for(timedelta(seconds=1))
        stored = world.wait(app.schedules.get("hourly"))
    assert ticks == [at_ms("2026-01-01T01:00")]
    assert stored.missed_count == 4
    assert stored.next_at == at_ms("2026-01-01T06:00")


def test_a_sync_payload_function_runs_in_a_thread_and_takes_no_virtual_time() -> None:
    app = Kizami()
    loops: list[bool] = []

    def payload(_: Tick) -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            loops.append(False)
        return "made"

    @app.performer
    def take(payload: str) -> str:
        return payload

    app.schedule("sync", take, payload=payload, cron="* * * * *")
    with World(app) as world:
        world.run_for(timedelta(minutes=3, milliseconds=1))
        jobs = world.wait(app.jobs.list(JobFilter(app.name))).jobs
    assert [(job.state, job.result, job.ended_at) for job in reversed(jobs)] == [
        (JobState.COMPLETED, '"made"', at_ms("2026-01-01T00:00") + n * MINUTE_MS) for n in (1, 2, 3)
    ]
    assert loops == [False] * 3


def at_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_no_settled_tick_is_planned_again_by_a_resume_or_a_redefinition_after_a_step_back() -> None:
    """B026: what was fired or dropped up to the last settled tick stays so, whatever the wall clock shows now."""
    app, changed = Kizami(), Kizami()
    ticks = noting(app, "hourly", "0 * * * *")
    later = noting(changed, "hourly", "*/30 * * * *")
    with World(app) as world:
        world.run_until("2026-01-01T01:00:01")
        world.stop(app)
        world.run_until("2026-01-01T06:30")
        world.start(app)
        world.run_for(timedelta(seconds=1))
        assert ticks == [at_ms("2026-01-01T01:00"), at_ms("2026-01-01T02:00")]
        world.step_wall_clock(timedelta(hours=-3))
        world.wait(app.schedules.pause("hourly"))
        resumed = world.wait(app.schedules.resume("hourly"))
        assert resumed.next_at == at_ms("2026-01-01T07:00")
        world.stop(app)
        with changed.rebound(runtime=app.runtime, store=world.store, settings=app.settings):
            world.start(changed)
            world.run_for(timedelta(hours=4))
            world.stop(changed)
    assert ticks[2:] == []
    assert later[0] == at_ms("2026-01-01T06:30")
