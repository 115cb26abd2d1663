"""Housekeeping in bounded batches: jobs past their retention, reservations that have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.store.protocol import Swept
from kizami.store.sqlite.job_counts import Tally
from kizami.store.sqlite.job_rows import created_at
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.sqlite.database import Moment

SQL: Final = load("jobs")
_RETENTIONS: Final = (("sweep_done", "completed_ms"), ("sweep_broken", "failed_ms"))


def sweep(connection: sqlite3.Connection, moment: Moment, app: str, limit: int) -> Swept:
    """Remove at most `limit` jobs and as many reservations."""
    left, tally = limit, Tally()
    for shard in connection.execute(SQL["shards_of_app"], {"app": app}).fetchall():
        for statement, kept in _RETENTIONS:
            if left > 0:
                left -= _sweep_shard(connection, tally, statement, shard["shard_key"], moment.now - shard[kept], left)
    tally.write(connection)
    reservations = connection.execute(SQL["sweep_reservations"], {"now": moment.now, "limit": limit}).rowcount
    return Swept(limit - left, reservations, more=left == 0 or reservations == limit)


def _sweep_shard(
    connection: sqlite3.Connection, tally: Tally, statement: str, shard_key: int, before: int, limit: int
) -> int:
    values = {"shard_key": shard_key, "before": before, "limit": limit}
    removed = connection.execute(SQL[statement], values).fetchall()
    for row in removed:
        tally.add(shard_key, (row["state"], ""), -1)
    if removed:
        until_at = created_at(max(row["key"] for row in removed))
        connection.execute(SQL["note_removed"], {"shard_key": shard_key, "until_at": until_at})
    return len(removed)
