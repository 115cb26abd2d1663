"""Finding jobs by filter, as fast among millions as among few: each filter has an index, and counts say what is rare.

Shards are searched one by one, each along one index that gives the wanted order; the first of all of them are the page.
Where no index gives the order (a rare state, by creation), the few rows of that state are gathered and sorted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import InvalidInputError
from kizami.core.names import split_job_id
from kizami.core.states import ACTIVE, JobState
from kizami.store.protocol import JobSort
from kizami.store.rooms.job_insert import KEY_BITS
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kizami.store.protocol import JobFilter
    from kizami.store.transaction import Transaction

SQL: Final = load("jobs")
GATHER_MAX: Final = 100_000
"""So many jobs of a state are gathered at most; a state with more is common enough to be met on the way."""

_KEY_MAX: Final = 2**63 - 1
_CURSOR: Final = re.compile(r"(?:(?P<value>[0-9]{1,19})[.])?(?P<key>[0-9]{1,19})", re.ASCII)
_ENDED: Final = ("kizami_jobs_done", "kizami_jobs_broken")
_STATES: Final = {
    "kizami_jobs_done": {JobState.COMPLETED, JobState.CANCELLED},
    "kizami_jobs_broken": {JobState.FAILED, JobState.STALLED},
    "kizami_jobs_active": ACTIVE,
    "kizami_jobs_waiting": {JobState.SCHEDULED},
    "kizami_jobs_ready": {JobState.SCHEDULED},
    "kizami_jobs_blocked": {JobState.SCHEDULED},
}
_PREDICATES: Final = {
    "kizami_jobs_done": "state IN ('COMPLETED', 'CANCELLED')",
    "kizami_jobs_broken": "state IN ('FAILED', 'STALLED')",
    "kizami_jobs_active": "state IN ('QUEUED', 'RUNNING')",
    "kizami_jobs_waiting": "pile = 'waiting'",
    "kizami_jobs_ready": "pile = 'ready'",
    "kizami_jobs_blocked": "pile = 'blocked'",
    "kizami_jobs_identity": "TRUE",
    "kizami_jobs_keyed": "concurrency_key <> ''",
    "kizami_jobs_unique": "unique_key <> ''",
    "kizami_jobs_schedule": "schedule IS NOT NULL",
    "kizami_jobs_created": "TRUE",
}
_COLUMNS: Final = {JobSort.CREATED: "key", JobSort.ENDED: "ended_at", JobSort.DUE: "due_at"}
_CONDITIONS: Final = {
    "local_id": "local_id = :local_id",
    "unique_key": "unique_key = :unique_key",
    "concurrency_key": "concurrency_key = :concurrency_key",
    "schedule": "schedule = :schedule",
    "from_key": "key >= :from_key",
    "to_key": "key < :to_key",
}
Found = tuple[int, int]
"""What a job is sorted by, and its key."""


def find_keys(transaction: Transaction, wanted: JobFilter) -> list[Found]:
    """Return the first `limit` jobs behind the cursor, in the order of the list."""
    _cursor(wanted)  # refused also where there is nothing to walk
    found: list[Found] = []
    for index, shard_key in _paths(transaction, wanted):
        pieces, values = walk(index, shard_key, wanted)
        found += ((row[0], row[1]) for row in transaction.execute(SQL["walk"], values, **pieces))
    found.sort(reverse=not wanted.oldest_first)
    return found[: wanted.limit]


def count_matches(transaction: Transaction, wanted: JobFilter, most: int) -> int:
    """Return how many jobs a filter finds, counting no further than `most`."""
    total = 0
    for index, shard_key in _paths(transaction, wanted):
        pieces, values = walk(index, shard_key, wanted)
        total += transaction.execute(SQL["count_walk"], values | {"limit": most - total}, **pieces).fetchone()[0]
        if total >= most:
            break
    return total


def cursor_of(wanted: JobFilter, last: Found) -> str:
    """Return the cursor behind a job."""
    return str(last[1]) if wanted.sort is JobSort.CREATED else f"{last[0]}.{last[1]}"


def _paths(transaction: Transaction, wanted: JobFilter) -> Iterator[tuple[str, int]]:
    counts = _counts(transaction, wanted)
    for shard_key, by_state in counts.items():
        matching = sum(n for state, n in by_state.items() if not wanted.states or state in wanted.states)
        if matching:
            yield from ((index, shard_key) for index in indexes_for(wanted, matching, sum(by_state.values())))


def _counts(transaction: Transaction, wanted: JobFilter) -> dict[int, dict[str, int]]:
    """Return the counts of the shards that the filter may find something in."""
    binding, shard = wanted.binding, None
    if wanted.job_id is not None:
        of_job, shard, _ = split_job_id(wanted.job_id)
        if binding not in (None, of_job):
            return {}
        binding = of_job
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    values = {"app": wanted.app, "binding": binding, "shard": shard}
    for row in transaction.execute(SQL["counts_of_shards"], values):
        counts[row["shard_key"]][row["state"]] = row["n"]
    return counts


def indexes_for(wanted: JobFilter, matching: int, total: int) -> tuple[str, ...]:
    """Return the indexes to walk in a shard of `total` jobs, of which `matching` are in the wanted states.

    That is the one of the most selective filter, or of the sort.
    """
    if wanted.sort is JobSort.DUE:
        return ("kizami_jobs_waiting",)
    if wanted.sort is JobSort.ENDED:
        return tuple(index for index in _ENDED if _touches(index, wanted))
    for value, index in (
        (wanted.job_id, "kizami_jobs_identity"),
        (wanted.unique_key, "kizami_jobs_unique"),
        (wanted.concurrency_key, "kizami_jobs_keyed"),
        (wanted.schedule, "kizami_jobs_schedule"),
    ):
        if value is not None:
            return (index,)
    if wanted.states and matching <= GATHER_MAX and 2 * matching < total:
        return tuple(index for index in _STATES if _touches(index, wanted))
    return ("kizami_jobs_created",)


def _touches(index: str, wanted: JobFilter) -> bool:
    return not wanted.states or not _STATES[index].isdisjoint(wanted.states)


def walk(index: str, shard_key: int, wanted: JobFilter) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the pieces of one walk's statement, constants of this module all of them, and its facts."""
    column = _COLUMNS[wanted.sort]
    facts = _facts(shard_key, wanted)
    where = ["shard_key = :shard_key", _PREDICATES[index]]
    where += [condition for name, condition in _CONDITIONS.items() if facts[name] is not None]
    if wanted.states:
        where.append(f"state IN ({', '.join(repr(JobState(state).value) for state in wanted.states)})")
    direction, sign = ("ASC", ">") if wanted.oldest_first else ("DESC", "<")
    if wanted.before is not None:
        at = "key {} :cursor_key" if wanted.sort is JobSort.CREATED else f"({column}, key) {{}} (:cursor, :cursor_key)"
        where.append(at.format(sign))
    order = f"key {direction}" if column == "key" else f"{column} {direction}, key {direction}"
    return {"column": column, "index": index, "where": " AND ".join(where), "order": order}, facts


def _facts(shard_key: int, wanted: JobFilter) -> dict[str, Any]:
    cursor, cursor_key = _cursor(wanted)
    return {
        "shard_key": shard_key,
        "limit": wanted.limit,
        "local_id": None if wanted.job_id is None else split_job_id(wanted.job_id)[2],
        "unique_key": wanted.unique_key,
        "concurrency_key": wanted.concurrency_key,
        "schedule": wanted.schedule,
        "from_key": None if wanted.created_from is None else _key_at(wanted.created_from),
        "to_key": None if wanted.created_to is None else _key_at(wanted.created_to),
        "cursor": cursor,
        "cursor_key": cursor_key,
    }


def _key_at(at: int) -> int:
    """Return the first key of an instant, within what a key can be."""
    return min(max(0, at) << KEY_BITS, _KEY_MAX)


def _cursor(wanted: JobFilter) -> tuple[int, int]:
    if wanted.before is None:
        return 0, 0
    match = _CURSOR.fullmatch(wanted.before)
    if match is None or (match["value"] is None) != (wanted.sort is JobSort.CREATED):
        raise InvalidInputError(
            f"{wanted.before!r} is not a cursor.", remedy="Use the next_cursor of an earlier page.", path="cursor"
        )
    value, key = int(match["value"] or 0), int(match["key"])
    if max(value, key) > _KEY_MAX:
        raise InvalidInputError(
            f"{wanted.before!r} is out of range.", remedy="Use the next_cursor of an earlier page.", path="cursor"
        )
    return value, key
