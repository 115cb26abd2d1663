"""Housekeeping in bounded batches: jobs past their retention, reservations that have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.store.protocol import Swept
from kizami.store.rooms.job_counts import Tally
from kizami.store.rooms.job_rows import created_at
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Moment, Transaction


SQL: Final = load("jobs")
_RETENTIONS: Final = (("sweep_done", "completed_ms"), ("sweep_broken", "failed_ms"))


def sweep(transaction: Transaction, moment: Moment, app: str, limit: int) -> Swept:
    """Remove at most `limit` jobs and as many reservations."""
    left, tally = limit, Tally()
    for shard in transaction.execute(SQL["shards_of_app"], {"app": app}).fetchall():
        for statement, kept in _RETENTIONS:
            if left > 0:
                left -= _sweep_shard(transaction, tally, statement, shard["shard_key"], moment.now - shard[kept], left)
    tally.write(transaction)
    reservations = transaction.execute(SQL["sweep_reservations"], {"now": moment.now, "limit": limit}).rowcount
    return Swept(limit - left, reservations, more=left == 0 or reservations == limit)


def _sweep_shard(
    transaction: Transaction, tally: Tally, statement: str, shard_key: int, before: int, limit: int
) -> int:
    values = {"shard_key": shard_key, "before": before, "limit": limit}
    removed = transaction.execute(SQL[statement], values).fetchall()
    for row in removed:
        tally.add(shard_key, (row["state"], ""), -1)
    if removed:
        until_at = created_at(max(row["key"] for row in removed))
        transaction.execute(SQL["note_removed"], {"shard_key": shard_key, "until_at": until_at})
    return len(removed)
