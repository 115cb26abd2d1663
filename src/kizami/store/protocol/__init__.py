"""What every store promises.

Each operation is one whole transaction, atomic and fenced (by claim number, by lease run id, by the planned time it
believes in), and says by its answer whether it landed: `False`, `None` or a missing row is an answer, not an error.
Repeating an operation after a lost answer is harmless. No operation takes the present time: a store reads its own
clock inside the transaction, so that machines with wrong clocks agree. A failure raises a `StoreError` and has
changed nothing.

The names are imported when first used: most programs need few of them, and `import kizami` must stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kizami.store.protocol.bindings import Binding, BindingDeclaration, BindingDiagnostics, BindingStore
    from kizami.store.protocol.deliveries import (
        BoardClaim,
        BoardEdit,
        BoardPost,
        BoardRow,
        BoardStore,
        CursorMove,
        CursorStore,
        Delivery,
        DeliveryClaim,
        DeliveryStore,
        Gate,
        GateStore,
        IdentityStore,
        Intent,
        NewDelivery,
        OwedDelivery,
    )
    from kizami.store.protocol.housekeeping import HousekeepingStore, Keep
    from kizami.store.protocol.jobs import (
        Attempt,
        Bulk,
        BulkAnswer,
        BulkOperation,
        Claim,
        ClaimedJob,
        Enqueued,
        Heartbeat,
        Horizon,
        Job,
        JobFilter,
        JobPage,
        JobSort,
        JobStore,
        NewJob,
        Origin,
        Outcome,
        Reaped,
        Refused,
        Report,
        Swept,
        Vouch,
    )
    from kizami.store.protocol.leases import Lease, LeaseFence, LeaseStore
    from kizami.store.protocol.schedules import (
        DuePage,
        DueSchedule,
        Editions,
        Fire,
        FireOutcome,
        FireRecord,
        Moved,
        Registration,
        Schedule,
        ScheduleDefinition,
        ScheduleStore,
        Superseded,
        TickKind,
        edition_fingerprint,
    )
    from kizami.store.protocol.store import Store, Topic
    from kizami.store.protocol.workers import Worker, WorkerStore

__all__ = [
    "Attempt",
    "Binding",
    "BindingDeclaration",
    "BindingDiagnostics",
    "BindingStore",
    "BoardClaim",
    "BoardEdit",
    "BoardPost",
    "BoardRow",
    "BoardStore",
    "Bulk",
    "BulkAnswer",
    "BulkOperation",
    "Claim",
    "ClaimedJob",
    "CursorMove",
    "CursorStore",
    "Delivery",
    "DeliveryClaim",
    "DeliveryStore",
    "DuePage",
    "DueSchedule",
    "Editions",
    "Enqueued",
    "Fire",
    "FireOutcome",
    "FireRecord",
    "Gate",
    "GateStore",
    "Heartbeat",
    "Horizon",
    "HousekeepingStore",
    "IdentityStore",
    "Intent",
    "Job",
    "JobFilter",
    "JobPage",
    "JobSort",
    "JobStore",
    "Keep",
    "Lease",
    "LeaseFence",
    "LeaseStore",
    "Moved",
    "NewDelivery",
    "NewJob",
    "Origin",
    "Outcome",
    "OwedDelivery",
    "Reaped",
    "Refused",
    "Registration",
    "Report",
    "Schedule",
    "ScheduleDefinition",
    "ScheduleStore",
    "Store",
    "Superseded",
    "Swept",
    "TickKind",
    "Topic",
    "Vouch",
    "Worker",
    "WorkerStore",
    "edition_fingerprint",
]

_ROOMS = ("jobs", "bindings", "schedules", "leases", "deliveries", "workers", "housekeeping", "store")


def __getattr__(name: str) -> Any:
    """Import a room of the protocol when one of its names is first used."""
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"{__name__}.{room}")
            if name in vars(module) and vars(module)[name].__module__ == module.__name__:
                return globals().setdefault(name, vars(module)[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
