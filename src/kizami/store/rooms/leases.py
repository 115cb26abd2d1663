"""Leases: heartbeats are measured with the boot clock; a lease of another boot has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.store.protocol.leases import Lease, LeaseFence
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.transaction import Database, Moment, Transaction, Write


_SQL = load("leases")


class LeaseRoom:
    """Operations on leases; see `LeaseStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(self, app: str, name: str, run_id: str, holder: str, worker_id: str, stale_ms: int) -> bool:
        """Take the lease if it is free or its heartbeat is strictly older than `stale_ms`: one conditional write."""
        facts = {"app": app, "name": name, "run_id": run_id, "holder": holder, "worker_id": worker_id}
        return await self._database.write(_landing("acquire", {**facts, "stale_ms": stale_ms}))

    async def renew(self, app: str, fence: LeaseFence) -> bool:
        """Beat; False: another run holds it now."""
        return await self._database.write(_landing("renew", _of(app, fence)))

    def renew_blocking(self, app: str, fence: LeaseFence) -> bool:
        """Beat from a thread that isn't the event loop."""
        return self._database.write_blocking(_landing("renew", _of(app, fence)))

    async def is_held(self, app: str, fence: LeaseFence) -> bool:
        """Tell whether this run still holds the lease."""

        def look(transaction: Transaction, moment: Moment) -> bool:
            facts = {**_of(app, fence), "boot_id": moment.boot_id}
            return transaction.execute(_SQL["is_held"], facts).fetchone() is not None

        return await self._database.read(look)

    async def release(self, app: str, fence: LeaseFence) -> bool:
        """Free the lease if this run holds it."""
        return await self._database.write(_landing("release", _of(app, fence)))

    async def list(self, app: str) -> tuple[Lease, ...]:
        """Return all leases of an app."""
        return await self._database.look(
            lambda transaction, _: tuple(Lease(*row) for row in transaction.execute(_SQL["list"], {"app": app})),
        )


def free_of(transaction: Transaction, worker_id: str) -> None:
    """Free every lease of a worker that is gone, inside the caller's transaction."""
    transaction.execute(_SQL["free_of"], {"worker_id": worker_id})


def _of(app: str, fence: LeaseFence) -> dict[str, Any]:
    return {"app": app, "name": fence.name, "run_id": fence.run_id}


def _landing(statement: str, facts: dict[str, Any]) -> Write[bool]:
    """Return a write that tells whether its one statement changed a row."""

    def run(transaction: Transaction, moment: Moment) -> bool:
        time = {"now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id}
        return transaction.execute(_SQL[statement], {**facts, **time}).rowcount == 1

    return run
