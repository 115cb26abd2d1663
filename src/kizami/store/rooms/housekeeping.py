"""Housekeeping in bounded batches: the fire ledger, deliveries, intents and workers that are silent for long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from kizami.store.protocol.store import Topic
from kizami.store.rooms.workers import bury
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol import Keep
    from kizami.store.transaction import Database, Moment, Transaction

_SQL: Final = load("housekeeping")
_SCHEDULES: Final = 20
"""How many schedules a batch looks at: each costs a walk over the lines that it keeps."""


class HousekeepingRoom:
    """Operations of housekeeping, each one transaction; see `HousekeepingStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sweep_ledger(self, app: str, keep: Keep, limit: int, after: str = "") -> str | None:
        """Remove old lines of schedules whose names come after one; return after which to go on."""
        return await self._database.write(
            lambda transaction, moment: _sweep_ledger(transaction, moment, app, keep, limit, after)
        )

    async def sweep_deliveries(self, app: str, keep: Keep, limit: int) -> int:
        """Remove old delivered items with their intents; return how many items."""
        return await self._database.write(
            lambda transaction, moment: _sweep_deliveries(transaction, moment, app, keep, limit)
        )

    async def sweep_intents(self, app: str, keep: Keep, limit: int) -> int:
        """Remove intents that were settled long ago; return how many."""

        def run(transaction: Transaction, moment: Moment) -> int:
            facts = {"app": app, "before": moment.now - keep.intents_ms, "limit": limit}
            return transaction.execute(_SQL["sweep_intents"], facts).rowcount

        return await self._database.write(run)

    async def sweep_workers(self, keep: Keep, limit: int) -> tuple[str, ...]:
        """Bury workers, of any app, that were silent for long; return their ids."""

        def run(transaction: Transaction, moment: Moment) -> tuple[str, ...]:
            facts = {"silent_ms": keep.silent_worker_ms, "limit": limit}
            silent = [row["worker_id"] for row in transaction.execute(_SQL["silent_workers"], facts).fetchall()]
            for worker_id in silent:
                bury(transaction, moment, worker_id)
            return tuple(silent)

        silent = await self._database.write(run)
        if silent:
            self._database.announce(Topic.OTHER)
        return silent


def _sweep_ledger(transaction: Transaction, moment: Moment, app: str, keep: Keep, limit: int, after: str) -> str | None:
    schedules = transaction.execute(
        _SQL["schedules_after"], {"app": app, "after": after, "limit": _SCHEDULES}
    ).fetchall()
    left = limit
    for schedule in schedules:
        if left <= 0:
            return after
        facts = {"app": app, "schedule": schedule["name"], "settled_at": schedule["settled_at"]}
        bounds = {"before": moment.now - keep.ledger_ms, "kept": keep.ledger_rows, "limit": left}
        left -= transaction.execute(_SQL["sweep_fires"], facts | bounds).rowcount
        after = schedule["name"]
    return after if len(schedules) == _SCHEDULES else None


def _sweep_deliveries(transaction: Transaction, moment: Moment, app: str, keep: Keep, limit: int) -> int:
    """Remove them with their intents: the attempts of an item that is added anew are numbered from 1 again."""
    left = limit
    for row in transaction.execute(_SQL["channels"], {"app": app}).fetchall():
        if left <= 0:
            break
        facts = {"app": app, "channel": row["channel"]}
        bounds = {"before": moment.now - keep.deliveries_ms, "limit": left}
        items = [gone["item"] for gone in transaction.execute(_SQL["sweep_delivered"], facts | bounds).fetchall()]
        if items:
            transaction.execute(_SQL["forget_intents"], facts | {"items": json.dumps(items)})
        left -= len(items)
    return limit - left
