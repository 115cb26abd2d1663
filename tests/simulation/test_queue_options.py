"""What an app says of its bindings and jobs reaches the queue: policies, keys, shards, operations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kizami import Kizami, Performer, Policy, Rate, Retention
from kizami.core.dispatch import Wait
from kizami.core.errors import DefinitionError, InvalidInputError, NotFoundError
from kizami.core.states import JobState
from kizami.engine.context import current_job
from kizami.store.protocol import JobFilter
from kizami.testing.world import World

MINUTE = timedelta(minutes=1)


class Counter:
    """How many run at the same time."""

    def __init__(self) -> None:
        self.now = self.most = self.all = 0

    async def pass_through(self) -> None:
        """Stay a second."""
        self.now, self.all = self.now + 1, self.all + 1
        self.most = max(self.most, self.now)
        await current_job().runtime.clock.sleep(1)
        self.now -= 1


def counting(**options: Any) -> tuple[Kizami, Performer[Any, Any], Counter]:
    app, counter = Kizami("shop"), Counter()

    @app.performer(**options)
    async def send(payload: int) -> None:
        del payload
        await counter.pass_through()

    return app, send, counter


@pytest.mark.parametrize(
    ("options", "keys", "most"),
    [
        ({"policy": Policy(concurrency=3)}, {}, 3),
        ({}, {"concurrency_key": "one"}, 1),
        ({"policy": Policy(per_key_concurrency=2)}, {"concurrency_key": "two"}, 2),
        ({"policy": Policy(rate=Rate(2, timedelta(seconds=2)))}, {}, 3),
        ({}, {}, 20),
    ],
)
def test_workers_keep_the_declared_limits(options: dict[str, Any], keys: dict[str, Any], most: int) -> None:
    """B047, B049: all jobs end, and no more run at once than declared."""
    app, send, counter = counting(**options)
    with World(app) as world:
        world.wait(app.enqueue_many([send.job(number, **keys) for number in range(20)]))
        world.run_for(MINUTE)
        assert (counter.all, counter.now) == (20, 0)
        assert counter.most <= most
        assert world.wait(app.jobs.count_by_state()) == {"send": {JobState.COMPLETED: 20}}


def test_an_enqueue_says_that_it_found_one() -> None:
    """B046: the id of the job that has the key, and its state."""
    app, send, _ = counting()
    with World(app) as world:
        first = world.wait(send.enqueue(1, unique_key="k", unique_for=timedelta(hours=1)))
        world.run_for(MINUTE)
        second = world.wait(send.enqueue(2, unique_key="k"))
        assert (first.existing, second, second.existing, second.state) == (False, first, True, JobState.COMPLETED)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "policy": (lambda: counting(policy=5), DefinitionError),
    "reaper_grace": (lambda: counting(policy=Policy(reaper_grace=timedelta(seconds=4))), DefinitionError),
    "retention": (lambda: counting(retention=MINUTE), DefinitionError),
    "shards": (lambda: counting(shards=True), DefinitionError),
    "requires_unique_key": (lambda: counting(requires_unique_key=1), DefinitionError),
    "concurrency_key": (lambda: counting(concurrency_key="k"), DefinitionError),
    "unique_key": (lambda: counting()[1].job(1, unique_key=2**63), DefinitionError),  # type: ignore[arg-type]  # the mistake under test
    "unique_for": (lambda: counting()[1].job(1, unique_for=timedelta(0)), DefinitionError),
    "partition_key": (lambda: counting(shards=2)[1].job(1), InvalidInputError),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_declaration_or_key_is_refused_where_it_is_written(field: str) -> None:
    """B058: a key is text, whatever its digits."""
    make, kind = WRONG[field]
    with pytest.raises(kind, match=field):
        make()


@pytest.mark.parametrize("key", ["a\0b", "\ud800", "", "x" * 256])
def test_a_key_that_no_store_could_hold_is_refused(key: str) -> None:
    """B055: the same decision on every store, before it is asked."""
    with pytest.raises(DefinitionError, match="concurrency_key"):
        counting()[1].job(1, concurrency_key=key)


def test_operators_see_and_change_what_a_binding_does() -> None:
    app, send, _ = counting(policy=Policy(concurrency=2))
    with World(app) as world:
        world.wait(app.bindings.pause("send"))
        ids = world.wait(app.enqueue_many([send.job(number) for number in range(5)]))
        world.run_for(MINUTE)
        (diagnosis,) = world.wait(app.bindings.diagnose())
        assert diagnosis.waiting[Wait.PAUSED] == 5
        assert world.wait(app.jobs.cancel_many(ids[:1])).done == (ids[0],)
        assert world.wait(app.jobs.cancel_many(JobFilter("", binding="send"), limit=1)).remaining == 3
        world.wait(app.jobs.reschedule(ids[4], delay=timedelta(hours=1)))
        assert world.wait(app.bindings.configure("send", concurrency=1)).policy.concurrency == 1
        world.wait(app.bindings.resume("send"))
        world.run_for(MINUTE)
        assert world.wait(app.jobs.count_by_state())["send"] == {
            JobState.CANCELLED: 2,
            JobState.COMPLETED: 2,
            JobState.SCHEDULED: 1,
        }
        with pytest.raises(DefinitionError, match="Binding send: reaper_grace 0:00:01 is shorter"):
            world.wait(app.bindings.configure("send", reaper_grace=timedelta(seconds=1)))
        assert world.wait(app.bindings.configure("send")).policy.concurrency == 2
        with pytest.raises(NotFoundError, match="no binding other"):
            world.wait(app.bindings.get("other"))


def test_ended_jobs_are_kept_as_long_as_declared() -> None:
    """B067: the housekeeping of a worker keeps to the retention of each binding."""
    app, send, _ = counting(retention=Retention(completed=timedelta(days=10)))
    with World(app) as world:
        world.wait(send.enqueue(1))
        world.run_for(timedelta(days=9))
        assert world.wait(app.jobs.count_by_state()) == {"send": {JobState.COMPLETED: 1}}
        world.run_for(timedelta(days=3))
        assert world.wait(app.jobs.count_by_state()) == {}
