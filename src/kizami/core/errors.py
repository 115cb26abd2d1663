"""Every error that Kizami raises on purpose, each with a stable code, its facts and the next step.

`str(error)` is one sentence that names the thing and the reason, followed by the remedy where there is one.
The web floor maps codes to HTTP statuses, the command line to exit codes; neither invents its own texts.
"""

from __future__ import annotations

from typing import ClassVar


class KizamiError(Exception):
    """Base of all errors of this package.

    `code` never changes between releases; `facts` holds what the message says as data; `remedy` is the next step.
    """

    code: ClassVar[str] = "kizami_error"

    def __init__(self, message: str, *, remedy: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message


class DefinitionError(KizamiError):
    """A definition in code is wrong: names the object, the field and the remedy."""

    code = "invalid_definition"


class CronError(DefinitionError):
    """A cron expression is refused (SPEC of timing: five numeric fields)."""

    code = "invalid_cron"


class TimeZoneError(DefinitionError):
    """A time zone is not a usable IANA name."""

    code = "invalid_time_zone"


class InvalidInputError(KizamiError):
    """A value given at run time is refused; `facts["path"]` names the place."""

    code = "invalid_input"


class PayloadError(InvalidInputError):
    """A payload, input or result is not JSON or does not fit the annotated type."""

    code = "invalid_payload"


class OtherDatabaseError(InvalidInputError):
    """A connection to enqueue through leads to another database than the app's."""

    code = "other_database"


class NotPlannedError(InvalidInputError):
    """An external clock named an instant that the schedule does not plan."""

    code = "not_planned"


class FireRefusedError(KizamiError):
    """A schedule could not be fired by hand: its payload function raised or took too long, or its payload is refused.

    The refused fire stands in the schedule's ledger.
    """

    code = "fire_refused"


class NotFoundError(KizamiError):
    """No such job, schedule, binding, board or delivery."""

    code = "not_found"


class WrongStateError(KizamiError):
    """The operation is not allowed in the present state (wrong state, as opposed to gone)."""

    code = "wrong_state"


class CursorMovedError(WrongStateError):
    """Another worker moved the cursor in between; facts: cursor, read, found (positions as JSON text or None)."""

    code = "cursor_moved"


class GoneError(KizamiError):
    """The thing existed and its retention has passed."""

    code = "gone"


class LeaseHeldError(KizamiError):
    """A lease is held by somebody else; facts: holder, started_at, heartbeat_at (epoch ms)."""

    code = "sync_in_progress"


class ConfigurationError(KizamiError):
    """A setting or environment variable is missing or unusable."""

    code = "configuration"


class StoreError(KizamiError):
    """The database refused or could not be reached; nothing was kept, except where StoreUnclearError says otherwise."""

    code = "store_unavailable"


class StoreBusyError(StoreError):
    """Another process held the write lock for longer than the wait allowed."""

    code = "store_busy"


class StoreFullError(StoreError):
    """The disk under the database is full."""

    code = "store_full"


class StoreReadOnlyError(StoreError):
    """The database file or its folder can't be written."""

    code = "store_read_only"


class StoreSlowError(StoreError):
    """A question to the database took too long, or too many wait already; work goes on meanwhile."""

    code = "store_slow"


class StoreUnclearError(StoreError):
    """The connection or the disk failed in the middle of a commit: the operation may have been kept.

    Who repeats it must make the repetition harmless: enqueue with a `unique_key`.
    """

    code = "store_unclear"


class StoreVersionError(StoreError):
    """The schema is newer or older than this code can use."""

    code = "store_version"
