"""Bringing back jobs that waited for their concurrency_key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from kizami.store.rooms.job_counts import BLOCKED, READY
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.rooms.job_counts import Tally
    from kizami.store.transaction import Transaction

SQL: Final = load("jobs")


def unblock(transaction: Transaction, tally: Tally, freed: Sequence[tuple[int, str]]) -> None:
    """Bring back one blocked job, the first in order, for each place of a (shard, key) that became free.

    So a key's first unstarted job is in the ready pile whenever one of its places is free, and in the same transaction
    that freed it: no wake-up is lost. Whoever takes a keyed job out of the ready pile without starting it calls this
    as well, since it may have been the one brought back.
    """
    if not freed:
        return
    transaction.execute(SQL["hold_shards"], {"shard_keys": json.dumps(sorted({shard_key for shard_key, _ in freed}))})
    blocked: dict[int, bool] = {}
    for shard_key, concurrency_key in freed:
        if shard_key not in blocked:
            blocked[shard_key] = (
                transaction.execute(SQL["any_blocked"], {"shard_key": shard_key}).fetchone() is not None
            )
        if blocked[shard_key]:
            values = {"shard_key": shard_key, "concurrency_key": concurrency_key}
            tally.move(shard_key, BLOCKED, READY, transaction.execute(SQL["unblock"], values).rowcount)
