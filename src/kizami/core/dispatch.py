"""Which ready jobs start now, under the policies of their bindings, and why the others wait.

A store reads a bounded view of each shard, asks `admit`, and carries its answer out in the same transaction. While
the answer says `again`, it reads on behind what it has just handled: a busy key never hides the jobs of other keys.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kizami.core.bucket import Bucket
    from kizami.core.policy import Policy


class Wait(StrEnum):
    """What an unstarted job waits for."""

    WORKER = "worker"
    CAPACITY = "capacity"
    TOKENS = "tokens"
    KEY = "key"
    PAUSED = "paused"
    NOT_YET_DUE = "not_yet_due"


class Candidate(NamedTuple):
    """A ready job; tuples compare in the order of dispatch."""

    rank: int
    order_key: int
    key: int
    concurrency_key: str | None


@dataclass(frozen=True, slots=True)
class ShardView:
    """What decides about one shard (a binding without shards has one).

    `active` counts its QUEUED and RUNNING jobs, `active_by_key` those of each concurrency_key among the candidates
    (absent: none). `bucket` is the token bucket now (`bucket_at`), None where there is no rate. `candidates` are the
    first of the ready pile in order; `more` tells whether others follow behind them.
    """

    shard_key: int
    policy: Policy
    active: int
    candidates: Sequence[Candidate] = ()
    more: bool = False
    bucket: Bucket | None = None
    active_by_key: Mapping[str, int] = field(default_factory=dict)
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a shard starts nothing more now, and in how many ms that ends by itself (None: when something happens)."""

    wait: Wait
    ends_in_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What starts now.

    `admitted`: keys of jobs in the order of dispatch, over all shards. `blocked`: keys of jobs whose concurrency_key
    is full, to be moved to the blocked pile. `buckets`: by shard, the ones that changed. `stops`: by shard. `again`:
    slots are left and a page of candidates ran out, so apply this, read on and ask again for the rest.
    """

    admitted: tuple[int, ...]
    blocked: tuple[int, ...]
    buckets: Mapping[int, Bucket]
    stops: Mapping[int, Stop]
    again: bool


def room(view: ShardView) -> int:
    """Return how many jobs a shard could start now, keys aside: no more candidates need to be read for it."""
    if view.paused:
        return 0
    free = max(0, view.policy.concurrency - view.active)
    return free if view.bucket is None else min(free, view.bucket.whole)


def stop_of(view: ShardView, started: int = 0) -> Stop | None:
    """Return why a shard starts nothing more after `started` jobs, or None if it may."""
    if view.paused:
        return Stop(Wait.PAUSED)
    if view.active + started >= view.policy.concurrency:
        return Stop(Wait.CAPACITY)
    if view.bucket is not None and view.bucket.whole <= started:
        return Stop(Wait.TOKENS, view.bucket.take(started).next_in_ms)
    return None


def admit(views: Sequence[ShardView], limit: int) -> Admission:
    """Choose up to `limit` jobs, in the order of dispatch over all shards, within every limit."""
    if len(views) == 1 and all(candidate[3] is None for candidate in views[0].candidates):
        return _admit_unkeyed(views[0], limit)
    walk = _Walk(views)
    again = limit > 0 and walk.go(limit)
    buckets = {
        view.shard_key: view.bucket.take(count)
        for view, count in zip(views, walk.started, strict=True)
        if view.bucket is not None and count
    }
    stops = {view.shard_key: stop for view, stop in zip(views, walk.stops, strict=True) if stop is not None}
    return Admission(tuple(walk.admitted), tuple(walk.blocked), buckets, stops, again)


def _admit_unkeyed(view: ShardView, limit: int) -> Admission:
    """Choose in one shard whose candidates have no keys: as `_Walk` does, but they need no look one by one."""
    count = min(limit, room(view), len(view.candidates))
    admitted = tuple([candidate[2] for candidate in view.candidates[:count]])
    stop = stop_of(view, count)
    buckets = {view.shard_key: view.bucket.take(count)} if view.bucket is not None and count else {}
    again = view.more and stop is None and count < limit
    return Admission(admitted, (), buckets, {} if stop is None else {view.shard_key: stop}, again)


class _Walk:
    """One pass over the candidates of all shards, best first."""

    def __init__(self, views: Sequence[ShardView]) -> None:
        self.views = views
        self.started = [0] * len(views)
        self.stops = [stop_of(view) for view in views]
        self.admitted: list[int] = []
        self.blocked: list[int] = []
        self._of_key = [dict(view.active_by_key) for view in views]

    def go(self, limit: int) -> bool:
        """Walk; True when a page ran out before the slots did (behind it, better jobs than the others' may follow)."""
        if any(self.stops[number] is None and view.more and not view.candidates for number, view in self._numbered()):
            return True
        for candidate, number in heapq.merge(*map(self._page, range(len(self.views)))):
            if len(self.admitted) == limit:
                return False
            if self.stops[number] is not None:
                continue
            self._meet(candidate, number)
            view = self.views[number]
            if view.more and self.stops[number] is None and candidate == view.candidates[-1]:
                return len(self.admitted) < limit
        return False

    def _numbered(self) -> Iterator[tuple[int, ShardView]]:
        return iter(enumerate(self.views))

    def _page(self, number: int) -> Iterator[tuple[Candidate, int]]:
        return ((candidate, number) for candidate in self.views[number].candidates)

    def _meet(self, candidate: Candidate, number: int) -> None:
        view, key = self.views[number], candidate.concurrency_key
        if key is not None:
            holders = self._of_key[number].get(key, 0)
            if holders >= view.policy.per_key_concurrency:
                self.blocked.append(candidate.key)
                return
            self._of_key[number][key] = holders + 1
        self.admitted.append(candidate.key)
        self.started[number] += 1
        self.stops[number] = stop_of(view, self.started[number])


@dataclass(frozen=True, slots=True)
class Piles:
    """How many jobs of a shard wait, are ready, and are blocked by their key."""

    waiting: int = 0
    ready: int = 0
    blocked: int = 0


def diagnose(view: ShardView, piles: Piles) -> dict[Wait, int]:
    """Return how many unstarted jobs of a shard wait for what.

    Of the ready ones, those that would start at once if a worker had a free slot wait for a WORKER, those beyond the
    tokens for TOKENS, those beyond the free places for CAPACITY.
    """
    waits = dict.fromkeys(Wait, 0)
    waits[Wait.NOT_YET_DUE], waits[Wait.KEY] = piles.waiting, piles.blocked
    if view.paused:
        waits[Wait.PAUSED] = piles.ready
        return waits
    free = max(0, view.policy.concurrency - view.active)
    startable = min(piles.ready, room(view))
    waits[Wait.WORKER] = startable
    waits[Wait.TOKENS] = min(piles.ready, free) - startable
    waits[Wait.CAPACITY] = piles.ready - startable - waits[Wait.TOKENS]
    return waits
