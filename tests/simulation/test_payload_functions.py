"""Payload functions, sync and async: where they run, what they can't hold up, and for which ticks they aren't asked."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kizami import Kizami, Tick, WorkerSettings
from kizami.core.errors import FireRefusedError, LeaseHeldError
from kizami.engine import firer
from kizami.engine.payload_function import CALLS_MAX
from kizami.engine.threads import call_apart
from kizami.store.protocol import FireOutcome, FireRecord, JobFilter
from tests.crash.processes import until

SECOND = timedelta(seconds=1)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Give an event that blocking functions wait for; set at the end, so that none outlives its test."""
    event = threading.Event()
    yield event
    event.set()


class Caller:
    """An object that is called like an async function."""

    async def __call__(self, tick: Tick) -> str:
        return f"object, {tick.schedule}"


async def given(prefix: str, tick: Tick) -> str:
    return f"{prefix}, {tick.schedule}"


FUNCTIONS: dict[str, Callable[[Tick], str | Awaitable[str]]] = {
    "object": Caller(),
    "partial": functools.partial(given, "partial"),
    "lambda": lambda tick: given("lambda", tick),
    "sync": lambda tick: f"sync, {tick.schedule}",
}


def app_in(folder: Path, settings: WorkerSettings) -> Kizami:
    app = Kizami(database_url=f"sqlite:///{folder / 'kizami.db'}", settings=settings)

    @app.performer
    async def take(payload: str) -> str:
        return payload

    return app


async def first_line(app: Kizami, schedule: str) -> FireRecord:
    async def is_there() -> bool:
        return bool(await app.schedules.ledger(schedule))

    await until(is_there, f"{schedule} is acted on", seconds=30)
    return (await app.schedules.ledger(schedule))[-1]


@pytest.mark.parametrize("kind", FUNCTIONS)
async def test_whatever_returns_an_awaitable_is_awaited(tmp_path: Path, kind: str) -> None:
    app = app_in(tmp_path, WorkerSettings(poll_ms=50))
    app.schedule("s", app.performers["take"], payload=FUNCTIONS[kind], cron="0 0 1 1 *")
    async with app.running():
        record = await app.schedules.trigger("s")
        assert record.job_id is not None
        job = await app.jobs.get(record.job_id)
    assert job is not None
    assert job.payload == f'"{kind}, s"'


async def test_an_async_payload_function_that_blocks_delays_nobody_and_has_its_limit(
    tmp_path: Path, released: threading.Event
) -> None:
    app = app_in(tmp_path, WorkerSettings(payload_ms=500, poll_ms=50))

    async def block(_: Tick) -> str:
        released.wait()
        return "late"

    app.schedule("blocking", app.performers["take"], payload=block, every=SECOND)
    app.schedule("well", app.performers["take"], payload=FUNCTIONS["partial"], every=SECOND)
    async with app.running():
        blocking, well = await first_line(app, "blocking"), await first_line(app, "well")
    assert (blocking.outcome, well.outcome) == (FireOutcome.FAILED, FireOutcome.FIRED)
    assert "payload function of blocking took longer than 500 ms" in str(blocking.reason)
    assert well.acted_at - well.planned_at < 900


async def test_an_async_function_runs_on_a_loop_of_its_own_and_is_cancelled_at_its_limit() -> None:
    cancelled, loops = threading.Event(), []

    async def wait() -> None:
        loops.append(asyncio.get_running_loop())
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        await call_apart(wait, name="test", limit_ms=50, on_overstay=lambda: None, on_end=lambda: None)
    assert await asyncio.to_thread(cancelled.wait, 30)
    assert loops != [asyncio.get_running_loop()]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, StopIteration])
async def test_an_end_that_a_payload_function_raises_is_its_ticks_only(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    """Neither the worker's, nor a cancellation of the fire, which would be tried again at once and for ever."""
    app = app_in(tmp_path, WorkerSettings(poll_ms=50))

    def end(_: Tick) -> str:
        raise kind

    async def end_later(_: Tick) -> str:
        raise kind

    app.schedule("sync", app.performers["take"], payload=end, every=SECOND)
    app.schedule("async", app.performers["take"], payload=end_later, every=SECOND)
    async with app.running():
        lines = [await first_line(app, name) for name in ("sync", "async")]
    assert [line.outcome for line in lines] == [FireOutcome.FAILED] * 2
    assert all(line.reason is not None and "payload function" in line.reason for line in lines)


async def test_a_payload_function_knows_a_fire_by_hand(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings())
    known: list[bool] = []

    def payload(tick: Tick) -> str:
        known.append(tick.manual)
        return "made"

    app.schedule("s", app.performers["take"], payload=payload, cron="0 0 * * *", driver="external")
    async with app.running(worker=False):
        await app.schedules.tick("s", datetime(2026, 1, 1, tzinfo=UTC))
        fired = await app.schedules.trigger("s")
        assert fired.job_id is not None
        job = await app.jobs.get(fired.job_id)
    assert known == [False, True]
    assert job is not None
    assert job.origin is not None
    assert job.origin.manual


async def test_no_payload_function_runs_for_a_tick_that_wants_no_job(tmp_path: Path) -> None:
    """Delivered again, overtaken, paused, skipped by its previous job, or refused by a held lease."""
    app = app_in(tmp_path, WorkerSettings())
    asked: list[datetime] = []

    def payload(tick: Tick) -> str:
        asked.append(tick.scheduled_at)
        return "made"

    app.schedule("s", app.performers["take"], payload=payload, cron="0 0 * * *", driver="external", lease="mirror")
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    async with app.running(worker=False):
        delivered = [days[1], days[1], days[0], days[2]]
        outcomes = [(await app.schedules.tick("s", at)).outcome for at in delivered]
        await app.schedules.pause("s")
        outcomes.append((await app.schedules.tick("s", days[3])).outcome)
        await app.store.leases.acquire(app.name, "mirror", "run", "somebody", "worker", 600_000)
        with pytest.raises(LeaseHeldError):
            await app.schedules.trigger("s")
        jobs = (await app.jobs.list(JobFilter(app.name))).jobs
    assert outcomes == [
        FireOutcome.FIRED,
        FireOutcome.DUPLICATE,
        FireOutcome.OVERTAKEN,
        FireOutcome.SKIPPED_OVERLAP,
        FireOutcome.PAUSED,
    ]
    assert asked == [days[1]]
    assert len(jobs) == 1


async def test_duplicates_and_overtaken_ticks_are_logged_with_their_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_in(tmp_path, WorkerSettings())
    app.schedule("s", app.performers["take"], payload="x", cron="0 0 * * *", driver="external")
    with caplog.at_level("INFO", "kizami.scheduler"):
        async with app.running(worker=False):
            for day in (2, 2, 1):
                await app.schedules.tick("s", datetime(2026, 1, day, tzinfo=UTC))
    assert caplog.messages == [
        "duplicate tick: s-1767312000000, this tick was settled already (fired)",
        "overtaken tick: s-1767225600000, a later tick was settled before it was delivered",
    ]


async def test_a_function_that_never_returns_costs_one_thread_and_its_ticks_say_why(
    tmp_path: Path, released: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """B027: what can't be ended must not pile up."""
    app = app_in(tmp_path, WorkerSettings(payload_ms=100, poll_ms=50))

    def block(_: Tick) -> str:
        released.wait()
        return "late"

    app.schedule("s", app.performers["take"], payload=block, every=SECOND)

    async def acted(times: int) -> list[FireRecord]:
        async def are_there() -> bool:
            return len(await app.schedules.ledger("s")) >= times

        await until(are_there, f"{times} ticks are settled", seconds=30)
        return list(reversed(await app.schedules.ledger("s")))

    async with app.running():
        first, second, *_ = await acted(3)
        assert [thread.name for thread in threading.enumerate()].count("kizami-payload") == 1
        with pytest.raises(FireRefusedError, match="is still running from an earlier tick"):
            await app.schedules.trigger("s")
        released.set()

        async def fires() -> bool:
            return (await app.schedules.ledger("s"))[0].outcome is FireOutcome.FIRED

        await until(fires, "it fires again", seconds=30)
    assert first.outcome is second.outcome is FireOutcome.FAILED
    assert "took longer than 100 ms" in str(first.reason)
    assert "is still running from an earlier tick" in str(second.reason)
    assert "the payload function of s has ended; s fires again" in caplog.messages


async def test_an_async_function_that_blocks_its_own_loop_counts_too(tmp_path: Path, released: threading.Event) -> None:
    app = app_in(tmp_path, WorkerSettings(payload_ms=50))

    async def block(_: Tick) -> str:
        released.wait()
        return "late"

    app.schedule("s", app.performers["take"], payload=block, cron="0 0 1 1 *")
    async with app.running(worker=False):
        for why in ("took longer than 50 ms", "is still running"):
            with pytest.raises(FireRefusedError, match=why):
                await app.schedules.trigger("s")


async def test_a_function_is_asked_by_few_at_once(tmp_path: Path, released: threading.Event) -> None:
    app = app_in(tmp_path, WorkerSettings())

    def wait(_: Tick) -> str:
        released.wait()
        return "made"

    app.schedule("s", app.performers["take"], payload=wait, cron="0 0 1 1 *")
    async with app.running(worker=False):
        asked = [asyncio.ensure_future(app.schedules.trigger("s")) for _ in range(CALLS_MAX + 1)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = done
        assert isinstance(refused.exception(), FireRefusedError)
        released.set()
        records = await asyncio.gather(*(each for each in asked if each is not refused))
    assert {record.outcome for record in records} == {FireOutcome.FIRED}


async def test_a_fire_by_hand_whose_payload_is_refused_is_an_error_and_stays_in_the_ledger(tmp_path: Path) -> None:
    app = app_in(tmp_path, WorkerSettings())

    def fail(_: Tick) -> str:
        message = "no rows yet"
        raise ValueError(message)

    app.schedule("raises", app.performers["take"], payload=fail, cron="0 0 1 1 *")
    app.schedule("wrong", app.performers["take"], payload=lambda _: 5, cron="0 0 1 1 *")
    async with app.running(worker=False):
        for name, why in (("raises", "ValueError: no rows yet"), ("wrong", "string")):
            with pytest.raises(FireRefusedError, match=why):
                await app.schedules.trigger(name)
            assert [line.outcome for line in await app.schedules.ledger(name)] == [FireOutcome.FAILED]


async def test_slow_functions_leave_room_for_the_others(tmp_path: Path, released: threading.Event) -> None:
    """The page of due ticks holds none that are being settled already."""
    app = app_in(tmp_path, WorkerSettings(poll_ms=50))

    def wait(_: Tick) -> str:
        released.wait()
        return "made"

    for number in range(3):
        app.schedule(f"a{number}", app.performers["take"], payload=wait, every=SECOND)
    app.schedule("well", app.performers["take"], payload="x", every=SECOND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firer, "DUE_MAX", 3)
        async with app.running():
            well = await first_line(app, "well")
            released.set()
    assert well.outcome is FireOutcome.FIRED
