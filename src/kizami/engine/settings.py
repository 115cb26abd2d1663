"""The numbers that a worker runs by."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Final

from kizami.core.errors import DefinitionError
from kizami.engine.lease import LeaseSettings
from kizami.store.protocol.housekeeping import Keep

GRACE_MS_MIN: Final = 100
"""Below that no worker could report a time-out before its job is taken."""

_LEAST: Final = {
    "concurrency": 1,
    "grace_ms": GRACE_MS_MIN,
    "reap_ms": 1,
    "poll_ms": 1,
    "vouch_ms": 1,
    "heartbeat_write_ms": 1,
    "payload_ms": 1,
    "jobs_per_process": 1,
}
_GROUPS: Final = frozenset({"lease", "keep"})
_MOST: Final = 10**12


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker behaves. Durations are milliseconds.

    `concurrency` jobs at once; `grace_ms` and `retention_ms` are the reaper_grace and the retention of performers that
    declare none, where their app doesn't either; other processes on this machine are looked at every `reap_ms`; every
    wait is cut to `poll_ms`, so that a stepped wall clock is noticed; `stop_ms` is what running jobs get at a graceful
    stop; a payload function may take `payload_ms`.

    When `overstays_max` threads go on although their jobs timed out, the worker claims no further synchronous jobs
    until some end; likewise for async performers that ignore their cancellation. At most `processes` child processes
    perform jobs (by default as many as there are processors; with 0, threads stand for them); each ends after
    `jobs_per_process` of them. `keep` says how long the ledger, deliveries and other records are kept.
    """

    concurrency: int = 100
    grace_ms: int = 30_000
    reap_ms: int = 1_000
    poll_ms: int = 1_000
    vouch_ms: int = 5_000
    heartbeat_write_ms: int = 5_000
    stop_ms: int = 10_000
    payload_ms: int = 10_000
    retention_ms: int = 7 * 24 * 3_600_000
    overstays_max: int = 100
    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    jobs_per_process: int = 100
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    keep: Keep = field(default_factory=Keep)

    def __post_init__(self) -> None:
        """Refuse what no worker can run by. Raises DefinitionError naming the field."""
        for one in fields(self):
            value, least = getattr(self, one.name), _LEAST.get(one.name, 0)
            if one.name not in _GROUPS and (type(value) is not int or not least <= value <= _MOST):
                raise _refusal(one.name, value, f"Give a whole number from {least} to {_MOST:,}.")
        if not isinstance(self.lease, LeaseSettings):
            raise _refusal("lease", self.lease, "Give LeaseSettings(...).")
        if not isinstance(self.keep, Keep):
            raise _refusal("keep", self.keep, "Give Keep(...).")


def _refusal(name: str, value: object, remedy: str) -> DefinitionError:
    return DefinitionError(f"WorkerSettings: {name} is {value!r}.", remedy=remedy, field=name)
