"""Claiming: read what decides, ask the core, carry its answer out, all under the one writer."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kizami.core.bucket import must_be_written
from kizami.core.dispatch import Candidate, admit, room, stop_of
from kizami.store.protocol import Horizon
from kizami.store.rooms.binding_rows import policy_of, shard_view, stored_bucket
from kizami.store.rooms.job_counts import BLOCKED, QUEUED, READY, WAITING, Tally
from kizami.store.rooms.job_rekey import rekey
from kizami.store.rooms.job_rows import ShardName, claimed_job, shard_name
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.dispatch import Admission, ShardView
    from kizami.store.protocol import Claim, ClaimedJob
    from kizami.store.rooms.job_memory import ClaimMemory
    from kizami.store.transaction import Ahead, Moment, Row, Transaction

SQL: Final = load("jobs")
PROMOTE_MAX: Final = 2_000
"""How many due jobs one transaction moves to the ready pile."""

SCAN_MAX: Final = 2_000
"""How many jobs one transaction looks at; a claim then goes on in another, so that others get their turn."""

PAGE_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """What one transaction of a claim took; `again`: it ended at a bound, and there may be more to take at once."""

    jobs: tuple[ClaimedJob, ...]
    again: bool = False


@dataclass(slots=True)
class _Shard:
    """A shard with work, as a claim goes through it."""

    row: Row
    view: ShardView
    ready: int
    name: ShardName

    @property
    def is_rebased(self) -> bool:
        """Tell whether its bucket has to be stored though nothing was taken."""
        stored, bucket = stored_bucket(self.row), self.view.bucket
        return stored is not None and bucket is not None and must_be_written(stored, bucket)


def horizon(transaction: Transaction, moment: Moment, app: str, bindings: tuple[str, ...]) -> Horizon:
    """Tell whether a claim is worth a try, and if not, when that changes by itself."""
    ready, wakes = False, []
    for shard in _shards_with_work(transaction, moment, _asking(app, bindings, hold=False)):
        due_at, stop = shard.row["next_due_at"], stop_of(shard.view)
        is_due = due_at is not None and due_at <= moment.now
        if stop is None:
            ready = ready or is_due or shard.ready > 0
        elif stop.ends_in_ms is not None and (is_due or shard.ready > 0):
            wakes.append(moment.now + stop.ends_in_ms)
        ready = ready or shard.row["rekey_after"] is not None or shard.is_rebased
        if due_at is not None and not is_due:
            wakes.append(due_at)
    return Horizon(moment.now, ready=ready, wake_at=min(wakes, default=None))


def claim(transaction: Transaction, moment: Moment, wanted: Claim, memory: ClaimMemory) -> Taken:
    """Promote what is due, then hand out up to the limit; only all that is due together has an order."""
    claiming = _Claiming(transaction, moment, wanted, memory)
    taken = Taken((), again=True) if claiming.promote() else claiming.run()
    claiming.finish()
    return taken


def foresee(wanted: Claim) -> list[Ahead]:
    """Return the statement with which a claim begins."""
    return [_asking(wanted.app, wanted.bindings, hold=True)]


def _asking(app: str, bindings: tuple[str, ...], *, hold: bool) -> Ahead:
    """Ask for the shards with work; `hold` keeps other claims from them."""
    return SQL["shards_with_work"], {"app": app, "bindings": json.dumps(bindings), "hold": int(hold)}


def _shards_with_work(transaction: Transaction, moment: Moment, asking: Ahead) -> list[_Shard]:
    rows = transaction.execute(*asking).fetchall()
    return [_Shard(row, shard_view(row, moment, policy_of(row)), row["ready"], shard_name(row)) for row in rows]


class _Claiming:
    """One transaction's rounds of read, decide and apply."""

    def __init__(self, transaction: Transaction, moment: Moment, wanted: Claim, memory: ClaimMemory) -> None:
        self.memory = memory
        self._transaction = transaction
        self._moment = moment
        self._wanted = wanted
        self._tally = Tally()
        self._taken: list[ClaimedJob] = []
        self._scanned = 0
        found = _shards_with_work(transaction, moment, _asking(wanted.app, wanted.bindings, hold=True))
        self._shards = {shard.view.shard_key: shard for shard in found}

    def promote(self) -> bool:
        """Move due jobs from waiting to ready; True when there are more of them than one transaction moves."""
        left = PROMOTE_MAX
        for shard in self._shards.values():
            due_at = shard.row["next_due_at"]
            if due_at is not None and due_at <= self._moment.now and left > 0:
                values = {"shard_key": shard.view.shard_key, "now": self._moment.now, "limit": left}
                promoted = self._transaction.execute(SQL["promote"], values).rowcount
                self._tally.move(shard.view.shard_key, WAITING, READY, promoted)
                shard.ready += promoted
                left -= promoted
        return left == 0

    def run(self) -> Taken:
        """Go on until the slots are full, nothing more may start, or the transaction has looked at enough."""
        rekeyed = [self._rekey(shard) for shard in self._shards.values() if shard.row["rekey_after"] is not None]
        again = self._rounds()
        for shard in self._shards.values():
            if shard.is_rebased:
                self._write_bucket(shard)
        return Taken(tuple(self._taken), again=again or any(rekeyed))

    def finish(self) -> None:
        """Write the counts."""
        self._tally.write(self._transaction)

    def _rounds(self) -> bool:
        """Return whether a bound ended the rounds."""
        page = self._wanted.limit
        while len(self._taken) < self._wanted.limit:
            if self._scanned >= SCAN_MAX:
                return True
            for shard in self._shards.values():
                self._look(shard, page)
            admission = admit([shard.view for shard in self._shards.values()], self._wanted.limit - len(self._taken))
            self._apply(admission)
            if not admission.again:
                return False
            page = min(PAGE_MAX, 4 * page)
        return False

    def _rekey(self, shard: _Shard) -> bool:
        freed, more = rekey(self._transaction, self._tally, shard.row, shard.view.policy)
        shard.ready += freed
        return more

    def _look(self, shard: _Shard, page: int) -> None:
        """Read the first candidates of a shard into its view; none where nothing may start anyway."""
        view, free = shard.view, room(shard.view)
        if free == 0 or shard.ready == 0:
            shard.view = replace(view, candidates=(), more=shard.ready > 0)
            return
        count = min(page, free) if self._scanned == 0 else page
        rows = self._transaction.tuples(SQL["ready_of_shard"], {"shard_key": view.shard_key, "limit": count})
        candidates = list(map(Candidate._make, rows))
        self._scanned += len(candidates)
        shard.view = replace(
            view,
            candidates=candidates,
            more=shard.ready > len(candidates),
            active_by_key=self._active_by_key(view.shard_key, candidates),
        )

    def _active_by_key(self, shard_key: int, candidates: Sequence[Candidate]) -> dict[str, int]:
        keys = {candidate.concurrency_key for candidate in candidates} - {None}
        if not keys:
            return {}
        values = {"shard_key": shard_key, "keys": json.dumps(list(keys))}
        return {row[0]: row[1] for row in self._transaction.execute(SQL["active_by_key"], values)}

    def _apply(self, admission: Admission) -> None:
        if admission.blocked:
            self._block(admission.blocked)
        if admission.admitted:
            self._take(admission.admitted)
        for shard_key, bucket in admission.buckets.items():
            shard = self._shards[shard_key]
            shard.view = replace(shard.view, bucket=bucket)
            self._write_bucket(shard)

    def _block(self, keys: tuple[int, ...]) -> None:
        for (shard_key,) in self._transaction.execute(SQL["block"], {"keys": json.dumps(keys)}).fetchall():
            self._tally.move(shard_key, READY, BLOCKED)
            self._shards[shard_key].ready -= 1

    def _take(self, keys: tuple[int, ...]) -> None:
        """Hand the jobs to the worker; one statement for each grace time among their policies."""
        taken: dict[int, ClaimedJob] = {}
        started: Counter[int] = Counter()
        for grace_ms, some in self._by_grace(keys).items():
            for row in self._transaction.tuples(SQL["claim"], self._claim_values(some, grace_ms)):
                taken[row[0]] = claimed_job(row, self._shards[row[2]].name, grace_ms)
                started[row[2]] += 1
                self.memory.note(row)
        self._taken += [taken[key] for key in keys]
        self._count(started)

    def _by_grace(self, keys: tuple[int, ...]) -> dict[int, list[int]]:
        times = {shard.view.policy.grace_ms for shard in self._shards.values()}
        if len(times) == 1:
            return {times.pop(): list(keys)}
        admitted = set(keys)
        groups: dict[int, list[int]] = {}
        for shard in self._shards.values():
            own = [candidate.key for candidate in shard.view.candidates if candidate.key in admitted]
            groups.setdefault(shard.view.policy.grace_ms, []).extend(own)
        return groups

    def _claim_values(self, keys: list[int], grace_ms: int) -> dict[str, Any]:
        return {
            "keys": json.dumps(keys),
            "worker_id": self._wanted.worker_id,
            "boot_id": self._moment.boot_id,
            "boot": self._moment.boot,
            "now": self._moment.now,
            "grace_ms": grace_ms,
        }

    def _count(self, started: Counter[int]) -> None:
        for shard_key, count in started.items():
            shard = self._shards[shard_key]
            shard.ready -= count
            shard.view = replace(shard.view, active=shard.view.active + count)
            self._tally.move(shard_key, READY, QUEUED, count)

    def _write_bucket(self, shard: _Shard) -> None:
        bucket = shard.view.bucket
        assert bucket is not None  # noqa: S101 - only called where there is a rate
        values = {name: getattr(bucket, name) for name in ("tokens", "interval_ms", "level", "at", "clock_id")}
        self._transaction.execute(SQL["write_bucket"], values | {"shard_key": shard.view.shard_key})
