"""Worker processes, and the burial of one whose process has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from kizami.runtime import ProcessIdentity
from kizami.store.protocol import Reaped, Worker
from kizami.store.protocol.store import Topic
from kizami.store.rooms import boards, deliveries, leases
from kizami.store.rooms.job_taking import take_of_worker
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.transaction import Database, Moment, Row, Transaction


SQL: Final = load("workers")


class WorkerRoom:
    """Operations on workers, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, worker: Worker) -> None:
        """Add a worker before it claims anything."""
        process = worker.process
        facts = {
            "worker_id": worker.worker_id,
            "app": worker.app,
            "host": process.host,
            "process_boot_id": process.boot_id,
            "pid_namespace": process.pid_namespace,
            "pid": process.pid,
            "started": process.started,
            "bindings": json.dumps(worker.bindings),
            "note": worker.note,
        }
        await self._database.write(lambda transaction, _: transaction.execute(SQL["register"], facts))

    async def list(self, app: str | None = None) -> Sequence[Worker]:
        """Return the registered workers."""
        return await self._database.read(
            lambda transaction, _: [_worker(row) for row in transaction.execute(SQL["list"], {"app": app})],
        )

    async def note(self, worker_id: str, note: str | None) -> None:
        """Show with a worker what keeps it from working fully."""
        facts = {"worker_id": worker_id, "note": note}
        await self._database.write(lambda transaction, _: transaction.execute(SQL["note"], facts).rowcount)

    async def bury(self, worker_id: str) -> tuple[Reaped, ...]:
        """Remove a dead worker, take over its jobs, free its leases and claims."""
        taken = await self._database.write(lambda transaction, moment: bury(transaction, moment, worker_id))
        self._database.announce(Topic.OTHER)
        return taken

    async def leave(self, worker_id: str) -> bool:
        """Remove a worker that has stopped; False: it still holds a lease or a claim, and stays until its burial."""
        facts = {"worker_id": worker_id}
        left = await self._database.write(lambda transaction, _: transaction.execute(SQL["leave"], facts).rowcount == 1)
        self._database.announce(Topic.OTHER)
        return left


def mark_seen(transaction: Transaction, worker_id: str) -> None:
    """Record a worker's sign of life."""
    transaction.execute(SQL["seen"], {"worker_id": worker_id})


def bury(transaction: Transaction, moment: Moment, worker_id: str) -> tuple[Reaped, ...]:
    """Remove a dead worker inside the caller's transaction; return what was taken over."""
    app = _remove(transaction, worker_id)
    if app is None:
        return ()
    taken = take_of_worker(transaction, moment, app, worker_id)
    for room in (leases, deliveries, boards):
        room.free_of(transaction, worker_id)
    return taken


def _remove(transaction: Transaction, worker_id: str) -> str | None:
    """Remove a worker; return its app, or None when it isn't there."""
    row = transaction.execute(SQL["remove"], {"worker_id": worker_id}).fetchone()
    return None if row is None else row["app"]


def _worker(row: Row) -> Worker:
    process = ProcessIdentity(row["host"], row["boot_id"], row["pid_namespace"], row["pid"], row["started"])
    bindings = tuple(json.loads(row["bindings"]))
    return Worker(row["worker_id"], row["app"], process, bindings, row["started_at"], row["seen_at"], row["note"])
