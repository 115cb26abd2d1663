"""Call gates, shared by all workers and kept over a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.store.protocol.deliveries import Gate
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Database, Moment, Transaction


_SQL = load("gates")


class GateRoom:
    """Operations on gates; see `GateStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def close(self, app: str, method: str, channel: str, for_ms: int, reason: str) -> None:
        """Close a gate for that long; an earlier closing that lasts longer stays."""
        facts = {"app": app, "method": method, "channel": channel, "for_ms": for_ms, "reason": reason}

        def run(transaction: Transaction, moment: Moment) -> None:
            time = {"now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id}
            transaction.execute(_SQL["close"], {**facts, **time})

        await self._database.write(run)

    async def closed(self, app: str) -> tuple[Gate, ...]:
        """Return the gates that are closed now."""

        def look(transaction: Transaction, moment: Moment) -> tuple[Gate, ...]:
            facts = {"app": app, "now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id}
            return tuple(Gate(*row) for row in transaction.execute(_SQL["closed"], facts))

        return await self._database.read(look)
