"""The numbers that a worker runs by."""

from __future__ import annotations

from dataclasses import dataclass, field

from kizami.engine.lease import LeaseSettings


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker behaves. Durations are milliseconds.

    `concurrency` jobs at once; a silent job is reaped after its timeout + `grace_ms`; other processes on this machine
    are looked at every `reap_ms`; every wait is cut to `poll_ms`, so that a stepped wall clock is noticed;
    `stop_ms` is what running jobs get at a graceful stop; a payload function may take `payload_ms`.
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
    lease: LeaseSettings = field(default_factory=LeaseSettings)
