"""Adding jobs: keys and shards, reservations of unique keys, and one statement for all rows of a call."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kizami.core.backoff import Backoff
from kizami.core.errors import InvalidInputError, NotFoundError
from kizami.core.names import job_id
from kizami.core.sharding import place
from kizami.core.states import JobState
from kizami.store.protocol import Enqueued
from kizami.store.rooms.binding_declaring import declare
from kizami.store.rooms.binding_rows import binding, policy_of
from kizami.store.rooms.job_counts import PILES, Tally
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.core.options import JobOptions
    from kizami.core.policy import Policy
    from kizami.store.protocol import Binding, NewJob
    from kizami.store.statements import Statement
    from kizami.store.transaction import Moment, Transaction

    Note = Callable[[NewJob, "Home"], None]

SQL: Final = load("jobs")
KEY_BITS: Final = 20
"""A job's key is the epoch ms of its creation, shifted by this, plus a counter."""

DUE_MAX: Final = 253_402_300_800_000
"""The year 10000; behind it, order keys could leave 64 bits."""

_DEFAULT_BACKOFF: Final = Backoff()
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Home:
    """Where the jobs of a binding go."""

    binding: Binding
    policy: Policy
    shard_keys: tuple[int, ...]
    prefixes: tuple[str, ...]
    stamp: str

    def shard_of(self, job: NewJob) -> int:
        """Return the job's shard. Raises InvalidInputError when its keys don't fit."""
        return place(self.binding.declared, job.options)


def _stored_home(transaction: Transaction, app: str, name: str) -> Home | None:
    rows = transaction.execute(*_asking_home(app, name)).fetchall()
    if not rows:
        return None
    keys = {row["shard"]: row["shard_key"] for row in rows}
    shards = range(rows[0]["shards"])
    ids = tuple(f"{name}#{shard}:" for shard in shards)
    shard_keys = tuple(keys[shard] for shard in shards)
    return Home(binding(rows[0]), policy_of(rows[0]), shard_keys, ids, rows[0]["stamp"])


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


def insert_jobs(
    transaction: Transaction, moment: Moment, jobs: Sequence[NewJob], note: Note | None = None
) -> list[Enqueued]:
    """Add jobs in order inside the caller's transaction; whose id or unique_key is taken is answered with that job.

    `note` is told where the jobs of a binding go.
    """
    return _Insert(transaction, moment, note).run(jobs)


def insert_job(transaction: Transaction, moment: Moment, job: NewJob) -> tuple[Enqueued, int | None]:
    """Add one job inside the caller's transaction; the key is None when one of its identity was there already."""
    insert = _Insert(transaction, moment)
    (answer,) = insert.run([job])
    return answer, None if answer.existing else insert.first_key


def foresee(jobs: Sequence[NewJob]) -> list[tuple[Statement, dict[str, Any]]]:
    """Return the statements with which adding these jobs begins."""
    homes = dict.fromkeys((job.app, job.binding) for job in jobs)
    return [_taking_keys(jobs), *(_asking_home(app, name) for app, name in homes)] if jobs else []


def _taking_keys(jobs: Sequence[NewJob]) -> tuple[Statement, dict[str, Any]]:
    return SQL["take_keys"], {"count": len(jobs)}


def _asking_home(app: str, name: str) -> tuple[Statement, dict[str, Any]]:
    return SQL["home"], {"app": app, "name": name}


class _Mould(NamedTuple):
    """What jobs of one binding with the same options have in common: in bulk, most of a row."""

    home: Home
    shard_key: int
    prefix: str
    middle: _Row


class _Insert:
    """One call's worth of new jobs."""

    def __init__(self, transaction: Transaction, moment: Moment, note: Note | None = None) -> None:
        self.first_key = 0
        self._note = note
        self._transaction = transaction
        self._moment = moment
        self._homes: dict[tuple[str, str], Home] = {}
        self._moulds: dict[tuple[str, str, int], _Mould] = {}

    def run(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Add them."""
        if not jobs:
            return []
        ranges = self._transaction.execute(*_taking_keys(jobs)).fetchall()
        keys = [key for first, last in ranges for key in range(first, last + 1)]
        self.first_key = keys[0]
        answers: list[Enqueued] = []
        rows: list[_Row] = []
        found = self._reserved(jobs)
        for at, (key, job) in enumerate(zip(keys, jobs, strict=True)):
            mould = self._mould(job)
            if at not in found:
                rows.append(self._row(key, mould, job))
            answers.append(found.get(at) or Enqueued(mould.prefix + job.local_id))
        refused = self._write(rows)
        for at, key in enumerate(keys):
            if key in refused:
                answers[at] = self._existing(jobs[at], answers[at].job_id)
        return answers

    def _mould(self, job: NewJob) -> _Mould:
        at = (job.app, job.binding, id(job.options))  # the caller's jobs keep their options alive meanwhile
        mould = self._moulds.get(at)
        if mould is None:
            home = self._home(job)
            middle = _middle(home.policy, job.options, self._moment.now, self._moment.now)
            shard = home.shard_of(job)
            mould = self._moulds[at] = _Mould(home, home.shard_keys[shard], home.prefixes[shard], middle)
        return mould

    def _home(self, job: NewJob) -> Home:
        at = (job.app, job.binding)
        home = self._homes.get(at)
        if home is None:
            home = self._homes[at] = home_of(self._transaction, self._moment, job)
            if self._note is not None:
                self._note(job, home)
        return home

    def _row(self, key: int, mould: _Mould, job: NewJob) -> _Row:
        """Return the parameters of the statement `insert`."""
        first_due, origin, middle = job.first_due, job.origin, mould.middle
        if first_due.delay_ms or first_due.run_at_ms is not None:
            due_at = self._moment.now + (first_due.delay_ms or 0)
            due_at = due_at if first_due.run_at_ms is None else first_due.run_at_ms
            middle = _middle(mould.home.policy, job.options, due_at, self._moment.now)
        if origin is None:
            return (key, mould.shard_key, job.local_id, *middle, "", 0, 0, "", job.payload)
        made_by = (origin.schedule, origin.scheduled_at, int(origin.manual), origin.lease or "")
        return (key, mould.shard_key, job.local_id, *middle, *made_by, job.payload)

    def _reserved(self, jobs: Sequence[NewJob]) -> dict[int, Enqueued]:
        """Reserve the unique_keys, in one order for all calls, so that no two wait for each other; return who lost."""
        order = sorted(
            (self._mould(job).shard_key, job.options.unique_key, at)
            for at, job in enumerate(jobs)
            if job.options.unique_key is not None
        )
        held = ((at, self._reserve(self._mould(jobs[at]), jobs[at])) for _, _, at in order)
        return {at: answer for at, answer in held if answer is not None}

    def _reserve(self, mould: _Mould, job: NewJob) -> Enqueued | None:
        """Reserve the job's unique_key, or answer with the job that has it."""
        shard_key, now = mould.shard_key, self._moment.now
        if self._state(shard_key, job.local_id) is not None:
            return None  # this very job is there: the insert finds it
        values = {
            "shard_key": shard_key,
            "unique_key": job.options.unique_key,
            "local_id": job.local_id,
            "until_at": now + job.options.unique_for_ms,
            "now": now,
        }
        if self._transaction.execute(SQL["reserve"], values).fetchall():
            return None
        ((local_id, its_shard_key, its_shard),) = self._transaction.execute(SQL["reserved"], values).fetchall()
        public = job_id(job.binding, its_shard, local_id)
        return Enqueued(public, existing=True, state=self._state(its_shard_key, local_id))

    def _write(self, rows: list[_Row]) -> set[int]:
        """Insert the rows and count them; return the keys of those that found a job of their identity."""
        written = self._transaction.execute_many(SQL["insert"], rows) if rows else 0
        refused = self._refused(rows) if written < len(rows) else set()
        tally = Tally()
        inserted = Counter((row[1], row[3]) for row in rows if not refused or row[0] not in refused)
        for (shard_key, pile), count in inserted.items():
            tally.add(shard_key, PILES[pile], count)
        tally.write(self._transaction)
        return refused

    def _existing(self, job: NewJob, public: str) -> Enqueued:
        return Enqueued(public, existing=True, state=self._state(self._mould(job).shard_key, job.local_id))

    def _refused(self, rows: list[_Row]) -> set[int]:
        keys = json.dumps([row[0] for row in rows])
        return {found[0] for found in self._transaction.execute(SQL["not_inserted"], {"keys": keys})}

    def _state(self, shard_key: int, local_id: str) -> JobState | None:
        values = {"shard_key": shard_key, "local_id": local_id}
        row = self._transaction.execute(SQL["state_of"], values).fetchone()
        return None if row is None else JobState(row[0])


def _middle(policy: Policy, options: JobOptions, due_at: int, now: int) -> _Row:
    """Return the parameters of `insert` that follow from options and due time."""
    first_due_at = max(due_at, now)
    rank, order_key = policy.place(options.priority, first_due_at)
    if due_at > DUE_MAX:
        raise InvalidInputError(
            f"The due time {due_at} ms is out of range.", remedy="Give an instant before the year 10000.", path="run_at"
        )
    in_order = ("ready" if due_at <= now else "waiting", options.priority, rank, order_key, due_at, first_due_at)
    keys = (options.concurrency_key or "", options.unique_key or "", options.partition_key or "")
    return (*in_order, *keys, options.max_attempts, options.guarantee.value, options.timeout_ms, backoff_text(options))


def backoff_text(options: JobOptions) -> str:
    """Return a job's backoff as it is stored, empty for the default."""
    return "" if options.backoff == _DEFAULT_BACKOFF else json.dumps(options.backoff.stored)
