"""Worker processes on SQLite, and the burial of one whose process has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kizami.runtime import ProcessIdentity
from kizami.store.protocol import Reaped, Worker
from kizami.store.sqlite import boards, deliveries, leases
from kizami.store.sqlite.job_taking import take_of_worker

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from kizami.store.sqlite.database import Database, Moment

_COLUMNS = "worker_id, app, host, boot_id, pid_namespace, pid, started, bindings, started_at, seen_at, note"


class SqliteWorkerStore:
    """Operations on workers, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, worker: Worker) -> None:
        """Add a worker before it claims anything."""

        def operation(connection: sqlite3.Connection, moment: Moment) -> None:
            process = worker.process
            values = (worker.worker_id, worker.app, process.host, process.boot_id, process.pid_namespace, process.pid)
            rest = (process.started, json.dumps(worker.bindings), moment.now, moment.now, worker.note, moment.boot)
            marks = "?,?,?,?,?,?,?,?,?,?,?,?"
            connection.execute(f"INSERT INTO kizami_workers ({_COLUMNS}, seen_boot) VALUES ({marks})", values + rest)  # noqa: S608 - constants

        await self._database.write(operation)

    async def list(self, app: str | None = None) -> Sequence[Worker]:
        """Return the registered workers."""
        where = "" if app is None else "WHERE app = ?"
        sql = f"SELECT {_COLUMNS} FROM kizami_workers {where} ORDER BY started_at, worker_id"  # noqa: S608 - constants
        values = () if app is None else (app,)
        return await self._database.read(
            lambda connection, _: [_worker(row) for row in connection.execute(sql, values)]
        )

    async def note(self, worker_id: str, note: str | None) -> None:
        """Show with a worker what keeps it from working fully."""
        sql = "UPDATE kizami_workers SET note = ? WHERE worker_id = ?"
        await self._database.write(lambda connection, _: connection.execute(sql, (note, worker_id)).rowcount)

    async def bury(self, worker_id: str) -> tuple[Reaped, ...]:
        """Remove a dead worker, take over its jobs, free its leases and claims."""
        taken = await self._database.write(lambda connection, moment: _bury(connection, moment, worker_id))
        self._database.announce()
        return taken

    async def leave(self, worker_id: str) -> None:
        """Remove a worker that has handed everything back."""
        await self._database.write(lambda connection, _: _remove(connection, worker_id))
        self._database.announce()


def mark_seen(connection: sqlite3.Connection, moment: Moment, worker_id: str) -> None:
    """Record a worker's sign of life."""
    values = (moment.now, moment.boot, worker_id)
    connection.execute("UPDATE kizami_workers SET seen_at = ?, seen_boot = ? WHERE worker_id = ?", values)


def _bury(connection: sqlite3.Connection, moment: Moment, worker_id: str) -> tuple[Reaped, ...]:
    row = connection.execute("SELECT app FROM kizami_workers WHERE worker_id = ?", (worker_id,)).fetchone()
    if row is None:
        return ()
    taken = take_of_worker(connection, moment, row["app"], worker_id)
    for room in (leases, deliveries, boards):
        room.free_of(connection, worker_id)
    _remove(connection, worker_id)
    return taken


def _remove(connection: sqlite3.Connection, worker_id: str) -> None:
    connection.execute("DELETE FROM kizami_workers WHERE worker_id = ?", (worker_id,))


def _worker(row: sqlite3.Row) -> Worker:
    process = ProcessIdentity(row["host"], row["boot_id"], row["pid_namespace"], row["pid"], row["started"])
    bindings = tuple(json.loads(row["bindings"]))
    return Worker(row["worker_id"], row["app"], process, bindings, row["started_at"], row["seen_at"], row["note"])
