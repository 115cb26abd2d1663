"""Leases: named rows that keep overlapping runs apart, kept alive by heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kizami.core.times import EpochMs


@dataclass(frozen=True, slots=True)
class LeaseFence:
    """What a write must carry: it lands only while this run holds the lease."""

    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as people see it; `run_id` is None when it is free."""

    app: str
    name: str
    run_id: str | None
    holder: str | None
    worker_id: str | None
    started_at: EpochMs | None
    heartbeat_at: EpochMs | None


class LeaseStore(Protocol):
    """Operations on leases."""

    async def acquire(self, app: str, name: str, run_id: str, holder: str, worker_id: str, stale_ms: int) -> bool:
        """Take the lease if it is free or its heartbeat is strictly older than `stale_ms`: one conditional write."""
        ...

    async def renew(self, app: str, fence: LeaseFence) -> bool:
        """Beat; False: another run holds it now."""
        ...

    def renew_blocking(self, app: str, fence: LeaseFence) -> bool:
        """Beat from a thread that isn't the event loop."""
        ...

    async def is_held(self, app: str, fence: LeaseFence) -> bool:
        """Tell whether this run still holds the lease."""
        ...

    async def release(self, app: str, fence: LeaseFence) -> bool:
        """Free the lease if this run holds it."""
        ...

    async def list(self, app: str) -> tuple[Lease, ...]:
        """Return all leases of an app."""
        ...
