"""Working a changed policy into the outstanding jobs of a shard, a bounded batch at each claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.states import OUTSTANDING
from kizami.store.rooms.job_counts import BLOCKED, READY
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.core.policy import Policy
    from kizami.store.rooms.job_counts import Tally
    from kizami.store.transaction import Row, Transaction

SQL: Final = load("jobs")
REKEY_MAX: Final = 2_000


def rekey(transaction: Transaction, tally: Tally, shard: Row, policy: Policy) -> tuple[int, bool]:
    """Re-key one batch; return how many blocked jobs came back to the ready pile, and whether there are more batches.

    A changed aging changes every place in the order; more places per key free blocked jobs, so those are met anew.
    """
    values = {"shard_key": shard["shard_key"], "after": shard["rekey_after"], "limit": REKEY_MAX}
    rows = transaction.execute(SQL["to_rekey"], values).fetchall()
    outstanding = [row for row in rows if row["state"] in OUTSTANDING]
    places = [(*policy.place(row["priority"], row["first_due_at"]), row["key"]) for row in outstanding]
    transaction.execute_many(SQL["rekey"], places)
    freed = sum(row["pile"] == "blocked" for row in outstanding)
    tally.move(shard["shard_key"], BLOCKED, READY, freed)
    more = len(rows) == REKEY_MAX
    values["after"] = rows[-1]["key"] if more else None
    transaction.execute(SQL["move_rekey_cursor"], values)
    return freed, more
