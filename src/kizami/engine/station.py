"""Where a worker works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.engine.condition import Condition
    from kizami.engine.settings import WorkerSettings
    from kizami.runtime import Runtime
    from kizami.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Station:
    """What every part of one worker is told: whose work it is, who does it, on which store, in which world."""

    app: str
    worker_id: str
    store: Store
    runtime: Runtime
    settings: WorkerSettings
    condition: Condition
