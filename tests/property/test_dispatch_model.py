"""What a dispatch admits, beside a model that tries the jobs one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from kizami.core.bucket import Bucket
from kizami.core.dispatch import Candidate, Piles, ShardView, Wait, admit, diagnose, room
from kizami.core.policy import Policy

KEYS = st.sampled_from([None, None, "a", "b", "c"])


@dataclass(frozen=True)
class Shard:
    """A shard with everything that is ready in it."""

    number: int
    policy: Policy
    jobs: tuple[Candidate, ...]
    running: tuple[str | None, ...]
    tokens: int | None
    paused: bool

    def view(self, page: int) -> ShardView:
        """Return what a store would read of it."""
        bucket = None if self.tokens is None else Bucket(10, 1_000, self.tokens * 1_000, 0)
        counts = Counter(key for key in self.running if key is not None)
        seen = self.jobs[:page]
        more = len(self.jobs) > page
        return ShardView(self.number, self.policy, len(self.running), seen, more, bucket, counts, paused=self.paused)


@st.composite
def worlds(draw: st.DrawFn) -> list[Shard]:
    numbers = iter(draw(st.permutations(range(60))))
    shards = []
    for number in range(draw(st.integers(1, 3))):
        policy = Policy(concurrency=draw(st.integers(1, 8)), per_key_concurrency=draw(st.integers(1, 3)))
        jobs = sorted(
            Candidate(0, draw(st.integers(0, 9)), next(numbers), draw(KEYS)) for _ in range(draw(st.integers(0, 12)))
        )
        running = tuple(draw(st.lists(KEYS, max_size=5)))
        tokens = draw(st.none() | st.integers(0, 10))
        shards.append(Shard(number, policy, tuple(jobs), running, tokens, draw(st.sampled_from([False, False, True]))))
    return shards


def model(shards: list[Shard], limit: int) -> list[int]:
    """Walk all jobs in order and start each that nothing forbids."""
    running = {shard.number: list(shard.running) for shard in shards}
    tokens = {shard.number: shard.tokens for shard in shards}
    started: list[int] = []
    for job, number in sorted((job, shard.number) for shard in shards for job in shard.jobs):
        key, policy, begun = job.concurrency_key, shards[number].policy, running[number]
        free = len(begun) < policy.concurrency and tokens[number] != 0 and not shards[number].paused
        key_free = key is None or begun.count(key) < policy.per_key_concurrency
        if len(started) < limit and free and key_free:
            started.append(job.key)
            begun.append(key)
            left = tokens[number]
            tokens[number] = None if left is None else left - 1
    return started


@given(worlds(), st.integers(0, 20), st.integers(1, 5))
def test_page_by_page_a_dispatch_starts_what_the_model_starts(shards: list[Shard], limit: int, page: int) -> None:
    """B049: no limit is passed, nothing that may start is held back, and the order holds over all shards and pages."""
    expected = model(shards, limit)
    started: list[int] = []
    world = {shard.number: shard for shard in shards}
    for _ in range(100):
        admission = admit([shard.view(page) for shard in world.values()], limit - len(started))
        started += admission.admitted
        for number, shard in world.items():
            world[number] = after(shard, admission.admitted, admission.blocked)
        if not admission.again:
            break
    assert started == expected


def after(shard: Shard, admitted: tuple[int, ...], blocked: tuple[int, ...]) -> Shard:
    """Return a shard after its jobs were started and moved out of the way."""
    begun = tuple(job.concurrency_key for job in shard.jobs if job.key in admitted)
    gone = {*admitted, *blocked}
    tokens = None if shard.tokens is None else shard.tokens - len(begun)
    jobs = tuple(job for job in shard.jobs if job.key not in gone)
    return replace(shard, jobs=jobs, running=shard.running + begun, tokens=tokens)


@given(worlds())
def test_every_waiting_job_waits_for_something(shards: list[Shard]) -> None:
    for shard in shards:
        view, ready = shard.view(99), len(shard.jobs)
        waits = diagnose(view, Piles(3, ready, 2))
        assert (waits[Wait.NOT_YET_DUE], waits[Wait.KEY]) == (3, 2)
        assert sum(waits.values()) == ready + 5
        assert waits[Wait.WORKER] == min(ready, room(view))
