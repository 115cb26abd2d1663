"""The whole store: one database with its rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.protocol.deliveries import BoardStore, CursorStore, DeliveryStore, GateStore
    from kizami.store.protocol.jobs import JobStore
    from kizami.store.protocol.leases import LeaseStore
    from kizami.store.protocol.schedules import ScheduleStore
    from kizami.store.protocol.workers import WorkerStore


class Store(Protocol):
    """One database. The rooms share it; each operation of a room is one transaction."""

    jobs: JobStore
    schedules: ScheduleStore
    workers: WorkerStore
    leases: LeaseStore
    deliveries: DeliveryStore
    boards: BoardStore
    gates: GateStore
    cursors: CursorStore

    async def open(self) -> None:
        """Connect, and bring the schema up to date where this store migrates by itself. Raises StoreError."""
        ...

    async def close(self) -> None:
        """Finish what is waiting and disconnect."""
        ...

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call `wake` (on the event loop) soon after this or another process changed something worth a look."""
        ...

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        ...
