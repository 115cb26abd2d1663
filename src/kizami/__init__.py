"""Kizami: jobs on a clock, durable, each tick once, mirrored into Slack."""

from kizami.app.app import Kizami
from kizami.app.client import Client
from kizami.app.performer import Performer
from kizami.app.tick import Tick
from kizami.core.backoff import Backoff
from kizami.core.cron import parse_cron
from kizami.core.errors import (
    ConfigurationError,
    CronError,
    CursorMovedError,
    DefinitionError,
    FireRefusedError,
    GoneError,
    InvalidInputError,
    KizamiError,
    LeaseHeldError,
    NotFoundError,
    NotPlannedError,
    OtherDatabaseError,
    PayloadError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreSlowError,
    StoreUnclearError,
    StoreVersionError,
    TimeZoneError,
    WrongStateError,
)
from kizami.core.next_fire import next_fire
from kizami.core.options import Guarantee
from kizami.core.outcomes import Cancel, Snooze
from kizami.core.policy import Policy, Rate, Retention
from kizami.core.states import JobState
from kizami.core.window import Window
from kizami.engine.context import JobContext, current_job
from kizami.engine.lease import LeaseSettings
from kizami.engine.records import JobLogFilter
from kizami.engine.settings import WorkerSettings
from kizami.store.protocol.housekeeping import Keep
from kizami.store.protocol.jobs import JobFilter, JobSort, Outcome
from kizami.store.protocol.schedules import FireOutcome, TickKind

__all__ = [
    "Backoff",
    "Cancel",
    "Client",
    "ConfigurationError",
    "CronError",
    "CursorMovedError",
    "DefinitionError",
    "FireOutcome",
    "FireRefusedError",
    "GoneError",
    "Guarantee",
    "InvalidInputError",
    "JobContext",
    "JobFilter",
    "JobLogFilter",
    "JobSort",
    "JobState",
    "Keep",
    "Kizami",
    "KizamiError",
    "LeaseHeldError",
    "LeaseSettings",
    "NotFoundError",
    "NotPlannedError",
    "OtherDatabaseError",
    "Outcome",
    "PayloadError",
    "Performer",
    "Policy",
    "Rate",
    "Retention",
    "Snooze",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreSlowError",
    "StoreUnclearError",
    "StoreVersionError",
    "Tick",
    "TickKind",
    "TimeZoneError",
    "Window",
    "WorkerSettings",
    "WrongStateError",
    "current_job",
    "next_fire",
    "parse_cron",
]
