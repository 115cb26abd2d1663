"""Bringing back jobs that waited for their concurrency_key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.store.sqlite.job_counts import BLOCKED, READY
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from kizami.store.sqlite.job_counts import Tally

SQL: Final = load("jobs")


def unblock(connection: sqlite3.Connection, tally: Tally, freed: Sequence[tuple[int, str]]) -> None:
    """Bring back one blocked job, the first in order, for each place of a (shard, key) that became free.

    So a key's first unstarted job is in the ready pile whenever one of its places is free, and in the same transaction
    that freed it: no wake-up is lost. Whoever takes a keyed job out of the ready pile without starting it calls this
    as well, since it may have been the one brought back.
    """
    blocked: dict[int, bool] = {}
    for shard_key, concurrency_key in freed:
        if shard_key not in blocked:
            blocked[shard_key] = connection.execute(SQL["any_blocked"], {"shard_key": shard_key}).fetchone() is not None
        if blocked[shard_key]:
            values = {"shard_key": shard_key, "concurrency_key": concurrency_key}
            tally.move(shard_key, BLOCKED, READY, connection.execute(SQL["unblock"], values).rowcount)
