"""Worker processes: who is there, and what happens to what a dead one held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kizami.core.times import EpochMs
from kizami.runtime import ProcessIdentity

if TYPE_CHECKING:
    from kizami.store.protocol.jobs import Reaped


@dataclass(frozen=True, slots=True)
class Worker:
    """One process start; `worker_id` is unique to it and never reused. `note` says what keeps it from working fully."""

    worker_id: str
    app: str
    process: ProcessIdentity
    bindings: tuple[str, ...]
    started_at: EpochMs = 0
    seen_at: EpochMs = 0
    note: str | None = None


class WorkerStore(Protocol):
    """Operations on workers."""

    async def register(self, worker: Worker) -> None:
        """Add a worker before it claims anything."""
        ...

    async def list(self, app: str | None = None) -> Sequence[Worker]:
        """Return the registered workers, of one app or of all."""
        ...

    async def note(self, worker_id: str, note: str | None) -> None:
        """Show with a worker what keeps it from working fully; None when nothing does any more."""
        ...

    async def bury(self, worker_id: str) -> tuple[Reaped, ...]:
        """Remove a worker whose process has ended: take its jobs, free its leases and claims, at once."""
        ...

    async def leave(self, worker_id: str) -> bool:
        """Remove a worker that stopped by itself; one that still holds a lease or a claim stays (False).

        Code of its jobs may go on until its process ends; `bury` frees what it holds then.
        """
        ...
