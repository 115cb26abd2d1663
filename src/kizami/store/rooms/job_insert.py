"""Adding jobs: keys and shards, reservations of unique keys, and one statement for all rows of a call."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kizami.core.backoff import Backoff
from kizami.core.errors import InvalidInputError, NotFoundError
from kizami.core.sharding import place
from kizami.core.states import JobState
from kizami.store.protocol import Enqueued
from kizami.store.rooms.binding_declaring import declare
from kizami.store.rooms.binding_rows import binding, policy_of
from kizami.store.rooms.job_counts import READY, WAITING, Tally
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.policy import Policy
    from kizami.store.protocol import Binding, NewJob
    from kizami.store.transaction import Moment, Transaction

SQL: Final = load("jobs")
KEY_BITS: Final = 20
"""A job's key is the epoch ms of its creation, shifted by this, plus a counter."""

_INTEGER_MAX: Final = 2**63 - 1
_DEFAULT_BACKOFF: Final = Backoff()
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Home:
    """Where the jobs of a binding go."""

    binding: Binding
    policy: Policy
    shard_keys: tuple[int, ...]
    prefixes: tuple[str, ...]

    def shard_of(self, job: NewJob) -> int:
        """Return the job's shard. Raises InvalidInputError when its keys don't fit."""
        return place(self.binding.declared, job.options)


def _stored_home(transaction: Transaction, app: str, name: str) -> Home | None:
    rows = transaction.execute(SQL["home"], {"app": app, "name": name}).fetchall()
    if not rows:
        return None
    keys = {row["shard"]: row["shard_key"] for row in rows}
    shards = range(rows[0]["shards"])
    ids = tuple(f"{name}#{shard}:" for shard in shards)
    return Home(binding(rows[0]), policy_of(rows[0]), tuple(keys[shard] for shard in shards), ids)


def home_of(transaction: Transaction, moment: Moment, job: NewJob) -> Home:
    """Return where a job goes; declares its binding when nobody has and the job says how. Raises NotFoundError."""
    home = _stored_home(transaction, job.app, job.binding)
    if home is None and job.declaration is not None:
        declare(transaction, moment, job.app, job.declaration)
        home = _stored_home(transaction, job.app, job.binding)
    if home is None:
        raise NotFoundError(
            f"App {job.app} has no binding {job.binding}.",
            remedy="Start a worker that defines it before others enqueue, or correct the name.",
            binding=job.binding,
        )
    return home


def insert_jobs(transaction: Transaction, moment: Moment, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Add jobs in order inside the caller's transaction; whose id or unique_key is taken is answered with that job."""
    return _Insert(transaction, moment).run(jobs)


def insert_job(transaction: Transaction, moment: Moment, job: NewJob) -> tuple[Enqueued, int | None]:
    """Add one job inside the caller's transaction; the key is None when one of its identity was there already."""
    insert = _Insert(transaction, moment)
    (answer,) = insert.run([job])
    return answer, None if answer.existing else insert.first_key


class _Insert:
    """One call's worth of new jobs."""

    def __init__(self, transaction: Transaction, moment: Moment) -> None:
        self.first_key = 0
        self._transaction = transaction
        self._moment = moment
        self._homes: dict[tuple[str, str], Home] = {}
        self._tally = Tally()

    def run(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Add them."""
        if not jobs:
            return []
        ranges = self._transaction.execute(SQL["take_keys"], {"count": len(jobs)}).fetchall()
        keys = [key for first, last in ranges for key in range(first, last + 1)]
        self.first_key = keys[0]
        answers: list[Enqueued] = []
        rows: dict[int, _Row] = {}
        for number, job in zip(keys, jobs, strict=True):
            home = self._home(job)
            shard = home.shard_of(job)
            found = None if job.options.unique_key is None else self._reserve(home, shard, number, job)
            if found is None:
                rows[len(answers)] = _row(number, home.shard_keys[shard], home.policy, job, self._moment.now)
            answers.append(found or Enqueued(home.prefixes[shard] + job.local_id))
        self._write(rows, answers)
        return answers

    def _home(self, job: NewJob) -> Home:
        at = (job.app, job.binding)
        home = self._homes.get(at)
        if home is None:
            home = self._homes[at] = home_of(self._transaction, self._moment, job)
        return home

    def _reserve(self, home: Home, shard: int, key: int, job: NewJob) -> Enqueued | None:
        """Reserve the job's unique_key, or answer with the job that has it."""
        shard_key, now = home.shard_keys[shard], self._moment.now
        if self._state(shard_key, job.local_id) is not None:
            return None  # this very job is there: the insert finds it
        values = {
            "shard_key": shard_key,
            "unique_key": job.options.unique_key,
            "local_id": job.local_id,
            "job_key": key,
            "until_at": now + job.options.unique_for_ms,
            "now": now,
        }
        if self._transaction.execute(SQL["reserve"], values).fetchall():
            return None
        ((local_id,),) = self._transaction.execute(SQL["reserved"], values).fetchall()
        return Enqueued(home.prefixes[shard] + local_id, existing=True, state=self._state(shard_key, local_id))

    def _write(self, rows: dict[int, _Row], answers: list[Enqueued]) -> None:
        written = self._transaction.execute_many(SQL["insert"], list(rows.values()))
        refused = self._refused(rows) if written < len(rows) else set()
        for at, row in rows.items():
            if row[0] in refused:
                state = self._state(row[1], row[2])
                answers[at] = Enqueued(answers[at].job_id, existing=True, state=state)
            else:
                self._tally.add(row[1], READY if row[3] == "ready" else WAITING)
        self._tally.write(self._transaction)

    def _refused(self, rows: dict[int, _Row]) -> set[int]:
        """Return the keys that found a job of their identity."""
        keys = json.dumps([row[0] for row in rows.values()])
        return {found[0] for found in self._transaction.execute(SQL["not_inserted"], {"keys": keys})}

    def _state(self, shard_key: int, local_id: str) -> JobState | None:
        values = {"shard_key": shard_key, "local_id": local_id}
        row = self._transaction.execute(SQL["state_of"], values).fetchone()
        return None if row is None else JobState(row[0])


def _row(key: int, shard_key: int, policy: Policy, job: NewJob, now: int) -> _Row:
    """Return the parameters of the statement `insert`."""
    options, origin = job.options, job.origin
    due_at = job.first_due.run_at_ms
    if due_at is None:
        due_at = now + (job.first_due.delay_ms or 0)
    first_due_at = max(due_at, now)
    rank, order_key = policy.place(options.priority, first_due_at)
    if not -_INTEGER_MAX <= order_key <= _INTEGER_MAX or due_at > _INTEGER_MAX:
        raise InvalidInputError(
            f"Job {job.local_id}: run_at {due_at} ms is out of range.", remedy="Give an instant before the year 9999."
        )
    head = (key, shard_key, job.local_id, "ready" if due_at <= now else "waiting", options.priority, rank, order_key)
    keys = (due_at, first_due_at, options.concurrency_key, options.unique_key, options.partition_key)
    rest = (options.max_attempts, options.guarantee.value, options.timeout_ms, _backoff_text(options.backoff))
    if origin is None:
        return (*head, *keys, *rest, None, None, 0, None, job.payload)
    return (*head, *keys, *rest, origin.schedule, origin.scheduled_at, int(origin.manual), origin.lease, job.payload)


@lru_cache(maxsize=256)
def _backoff_text(backoff: Backoff) -> str | None:
    return None if backoff == _DEFAULT_BACKOFF else json.dumps(asdict(backoff))
