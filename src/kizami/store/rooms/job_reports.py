"""Recording what became of claimed jobs: a whole batch with a few statements."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kizami.core.names import job_id
from kizami.core.states import ACTIVE, Actor, JobState, may_move, require_move
from kizami.store.protocol import Outcome
from kizami.store.rooms.job_blocked import unblock
from kizami.store.rooms.job_counts import COMPLETED, PILES, QUEUED, Place, Tally
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.protocol import Report
    from kizami.store.rooms.job_memory import ClaimMemory
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("jobs")
_Row = tuple[Any, ...]


class NotFirstTriesError(Exception):
    """Some of these reports don't complete a first try: the transaction is to be taken back, and each be looked at."""


def first_tries(reports: Sequence[Report], memory: ClaimMemory) -> list[tuple[int, str | None]] | None:
    """Return shard and concurrency_key of each report's job; None unless all of them seem to complete first tries."""
    known = [memory.forget(report) for report in reports]
    homes = [home for home in known if home is not None]
    return homes if len(homes) == len(reports) else None


def complete_first_tries(
    transaction: Transaction, moment: Moment, reports: Sequence[Report], homes: Sequence[tuple[int, str | None]]
) -> tuple[bool, ...]:
    """Complete a batch of first tries by one statement. Raises NotFirstTriesError unless all of them are."""
    ends = [(moment.now, report.result or "", report.result_note or "", report.key) for report in reports]
    if transaction.execute_many(SQL["complete_first_try"], ends) != len(ends):
        raise NotFirstTriesError
    tally = Tally()
    for shard_key, count in Counter(shard_key for shard_key, _ in homes).items():
        tally.move(shard_key, QUEUED, COMPLETED, count)
    unblock(transaction, tally, [(shard_key, key) for shard_key, key in homes if key is not None])
    tally.write(transaction)
    return (True,) * len(reports)


def record(transaction: Transaction, moment: Moment, reports: Sequence[Report]) -> tuple[bool, ...]:
    """Move the jobs where the reports say; False for each whose claim number is no longer current."""
    answers: list[bool] = []
    wave: dict[int, Report] = {}
    for report in reports:
        if report.key in wave:  # the second report of a job sees what the first one did
            answers += _Wave(transaction, moment, wave).record()
            wave = {}
        wave[report.key] = report
    return (*answers, *_Wave(transaction, moment, wave).record())


def log_attempts(transaction: Transaction, lines: Sequence[_Row]) -> None:
    """Add lines (key, attempt, claim, outcome, error, worker, start, end) to the attempt log; the last 20 are kept."""
    transaction.execute_many(SQL["log_attempt"], lines)
    transaction.execute_many(SQL["trim_attempts"], [(line[0],) for line in lines])


class _Wave:
    """Reports of different jobs."""

    def __init__(self, transaction: Transaction, moment: Moment, reports: dict[int, Report]) -> None:
        self._transaction = transaction
        self._moment = moment
        self._reports = reports
        self._tally = Tally()
        self._ended: list[_Row] = []
        self._again: list[_Row] = []
        self._lines: list[_Row] = []
        self._freed: list[tuple[int, str]] = []
        self._skipped: list[Row] = []

    def record(self) -> list[bool]:
        """Judge each report by its row, then write all of them at once."""
        keys = json.dumps(list(self._reports))
        held = {row[0]: row for row in self._transaction.execute(SQL["held"], {"keys": keys})}
        answers = [self._judge(held.get(report.key), report) for report in self._reports.values()]
        self._transaction.execute_many(SQL["end"], self._ended)
        self._transaction.execute_many(SQL["again"], self._again)
        log_attempts(self._transaction, self._lines)
        unblock(self._transaction, self._tally, self._freed)
        self._tally.write(self._transaction)
        for row in self._skipped:
            _skip_by_lease(self._transaction, self._moment, row)
        return answers

    def _judge(self, row: Row | None, report: Report) -> bool:
        if row is None or row["claim"] != report.claim or row["state"] not in ACTIVE:
            return _landed_before(self._transaction, report)
        current, target = JobState(row["state"]), report.state
        if not may_move(current, target, Actor.PERFORMER):
            require_move(self._public_id(row), current, target, Actor.PERFORMER)
        after = self._put_again(row, report) if target is JobState.SCHEDULED else self._put_end(report)
        self._tally.move(row["shard_key"], (row["state"], ""), after)
        if row["concurrency_key"] is not None:
            self._freed.append((row["shard_key"], row["concurrency_key"]))
        if report.outcome is not Outcome.COMPLETED or row["claim"] != 1:
            self._lines.append(_line(row, report))
        if report.skipped_by_lease and row["schedule"] is not None and not row["manual"]:
            self._skipped.append(row)
        return True

    def _put_end(self, report: Report) -> Place:
        state = report.state.value
        progress = 1.0 if report.state is JobState.COMPLETED else None
        result = (report.result or "", report.result_note or "", report.error or "", progress)
        self._ended.append((state, self._moment.now, *result, report.key, report.claim))
        return state, ""

    def _put_again(self, row: Row, report: Report) -> Place:
        due_at = self._moment.now + report.delay_ms
        pile = "ready" if due_at <= self._moment.now else "waiting"
        snoozes = row["snoozes"] + 1 if report.outcome is Outcome.SNOOZED else 0
        used = int(report.uses_attempt)
        self._again.append((pile, due_at, 1 - used, used, snoozes, report.error, report.key, report.claim))
        return PILES[pile]

    def _public_id(self, row: Row) -> str:
        home = self._transaction.execute(SQL["name_of_shard"], {"shard_key": row["shard_key"]}).fetchone()
        return job_id(home["binding"], home["shard"], row["local_id"])


def _line(row: Row, report: Report) -> _Row:
    ends = (row["worker_id"], report.started_at, report.ended_at)
    return (report.key, row["attempt"], report.claim, report.outcome.value, report.error, *ends)


def _landed_before(transaction: Transaction, report: Report) -> bool:
    """Tell whether this very report is what ended the claim: its answer may have been lost."""
    values: dict[str, Any] = {
        "key": report.key,
        "claim": report.claim,
        "state": str(report.state),
        "outcome": str(report.outcome),
        "result": report.result,
        "started_at": report.started_at,
        "ended_at": report.ended_at,
    }
    return transaction.execute(SQL["landed_already"], values).fetchone() is not None


def _skip_by_lease(transaction: Transaction, moment: Moment, row: Row) -> None:
    home = transaction.execute(SQL["name_of_shard"], {"shard_key": row["shard_key"]}).fetchone()
    values = {
        "app": home["app"],
        "schedule": row["schedule"],
        "scheduled_at": row["scheduled_at"],
        "now": moment.now,
        "reason": f"the lease {row['lease']} was held by another run",
    }
    if transaction.execute(SQL["skip_fire_by_lease"], values).rowcount:
        transaction.execute(SQL["count_lease_skip"], values)
