"""The whole store: one database with its rooms."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.protocol.bindings import BindingStore
    from kizami.store.protocol.deliveries import BoardStore, CursorStore, DeliveryStore, GateStore, IdentityStore
    from kizami.store.protocol.housekeeping import HousekeepingStore
    from kizami.store.protocol.jobs import JobStore
    from kizami.store.protocol.leases import LeaseStore
    from kizami.store.protocol.schedules import ScheduleStore
    from kizami.store.protocol.workers import WorkerStore


class Topic(StrEnum):
    """What a change is about."""

    JOBS = "jobs"
    OTHER = "other"
    """Schedules, bindings, workers: what changes seldom."""


ALL_TOPICS: Final = tuple(Topic)


class Store(Protocol):
    """One database. The rooms share it; each operation of a room is one transaction.

    What people ask (jobs: get, list, count_by_state; deliveries: get, list, counts; bindings: get, list, diagnose;
    schedules: list, ledger; boards: list; leases: list) is answered on a lane of its own, and raises StoreSlowError
    when it takes too long or too many ask. All else is the engine's and waits for no such question.
    """

    @property
    def jobs(self) -> JobStore:
        """Return the room of jobs."""
        ...

    @property
    def bindings(self) -> BindingStore:
        """Return the room of bindings."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """Return the room of schedules."""
        ...

    @property
    def workers(self) -> WorkerStore:
        """Return the room of workers."""
        ...

    @property
    def leases(self) -> LeaseStore:
        """Return the room of leases."""
        ...

    @property
    def deliveries(self) -> DeliveryStore:
        """Return the room of deliveries."""
        ...

    @property
    def boards(self) -> BoardStore:
        """Return the room of boards."""
        ...

    @property
    def gates(self) -> GateStore:
        """Return the room of gates."""
        ...

    @property
    def cursors(self) -> CursorStore:
        """Return the room of cursors."""
        ...

    @property
    def identity(self) -> IdentityStore:
        """Return the room of the database's own id."""
        ...

    @property
    def housekeeping(self) -> HousekeepingStore:
        """Return the room of housekeeping."""
        ...

    @property
    def is_lasting(self) -> bool:
        """Tell whether what is stored is still there after this process; in memory it is not."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date where this store migrates by itself. Raises StoreError."""
        ...

    async def close(self) -> None:
        """Finish what is waiting and disconnect."""
        ...

    def on_change(self, wake: Callable[[], None], topics: tuple[Topic, ...] = ALL_TOPICS) -> Callable[[], None]:
        """Call `wake` (on the event loop) soon after this or another process changed something worth a look.

        Return what ends that; safe to call twice.
        """
        ...

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        ...
