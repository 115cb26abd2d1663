"""What went wrong with a PostgreSQL, in our own errors: which database, the reason, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psycopg

from kizami.core.errors import (
    InvalidInputError,
    KizamiError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)

if TYPE_CHECKING:
    from kizami.store.postgres.place import Place

MIGRATE: Final = "Run `kizami migrate`."
_AGAIN: Final = {"40001", "40P01"}  # serialisation failure, deadlock: nothing happened, and it works the next time


@dataclass(frozen=True, slots=True)
class _Fault:
    kind: type[KizamiError]
    message: str
    remedy: str


_FULL: Final = _Fault(
    StoreFullError,
    "The disk under the database {place} is full.",
    "Free some space; nothing was half written, and Kizami goes on by itself.",
)
_STANDBY: Final = _Fault(
    StoreReadOnlyError,
    "The database {place} can't be written: it is a standby, or set to read-only.",
    "Name the primary in KIZAMI_DATABASE_URL, or all hosts, so that Kizami finds it.",
)
_OTHER_SCHEMA: Final = _Fault(
    StoreVersionError,
    "The schema of the database {place} is not that of this version of Kizami: {said}.",
    MIGRATE,
)
_BUSY: Final = _Fault(
    StoreBusyError,
    "The database {place} kept Kizami waiting for too long: {said}.",
    "End what keeps a lock or a transaction open on it (pg_stat_activity names it); Kizami tries again by itself.",
)
_TOO_LONG: Final = _Fault(
    InvalidInputError,
    "A value is too long for the database {place}: {said}.",
    "Make it shorter; names, keys and items have room for about 2,000 bytes.",
)
_DENIED: Final = _Fault(
    StoreReadOnlyError,
    "The database {place} denies it: {said}.",
    "Grant the role the right, or name another one in KIZAMI_DATABASE_URL.",
)
_UNREACHABLE: Final = "The database {place} can't be reached: {said}."
_LOGIN: Final = _Fault(
    StoreError, _UNREACHABLE, "Mend the user or password in KIZAMI_DATABASE_URL, or the server's pg_hba.conf."
)
_NO_DATABASE: Final = _Fault(StoreError, _UNREACHABLE, "Create it (createdb), or change KIZAMI_DATABASE_URL.")
_CROWDED: Final = _Fault(
    StoreError,
    _UNREACHABLE,
    "Raise the server's max_connections, or put pgbouncer in between; a process uses up to eight.",
)
_AWAY: Final = _Fault(
    StoreError, _UNREACHABLE, "See that it runs and can be reached from here; Kizami tries again by itself."
)
_OTHER: Final = _Fault(StoreError, "The database {place} failed: {said}.", "See the database's own message.")

_BY_CODE: Final = {
    "53100": _FULL,
    "25006": _STANDBY,
    "42P01": _OTHER_SCHEMA,
    "42883": _OTHER_SCHEMA,
    "42703": _OTHER_SCHEMA,
    "3F000": _OTHER_SCHEMA,
    "55P03": _BUSY,
    "57014": _BUSY,
    "40001": _BUSY,
    "40P01": _BUSY,
    "54000": _TOO_LONG,
    "42501": _DENIED,
    "28000": _LOGIN,
    "28P01": _LOGIN,
    "3D000": _NO_DATABASE,
    "53300": _CROWDED,
}
_BY_WORDS: Final = {  # while connecting there is no code
    "password": _LOGIN,
    "role ": _LOGIN,
    "pg_hba.conf": _LOGIN,
    "does not exist": _NO_DATABASE,
    "too many clients": _CROWDED,
    "connection slots": _CROWDED,
    "session is read-only": _STANDBY,
}


def translate(error: psycopg.Error, place: Place) -> Exception:
    """Return our own error for one of PostgreSQL's; a value or a row that it refuses is a bug and stays itself."""
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return error
    said = _said(error)
    fault = _BY_CODE.get(error.sqlstate or "") or _by_kind(error, said)
    message = fault.message.format(place=place.shown, said=said)
    return fault.kind(message, remedy=fault.remedy, place=place.shown)


def may_repeat(error: psycopg.Error) -> bool:
    """Tell whether the server itself took a transaction back, to be run again."""
    return error.sqlstate in _AGAIN


def is_ended(error: psycopg.Error) -> bool:
    """Tell whether the server ended a statement because its time was over."""
    return error.sqlstate == "57014"


def needs_new_connection(error: psycopg.Error) -> bool:
    """Tell whether another connection may lead to another server: this one became a standby."""
    return error.sqlstate == "25006"


def _by_kind(error: psycopg.Error, said: str) -> _Fault:
    if not isinstance(error, psycopg.OperationalError):
        return _OTHER
    return next((fault for words, fault in _BY_WORDS.items() if words in said), _AWAY)


def _said(error: psycopg.Error) -> str:
    """Return what the database said in one line: the first, or of several hosts that were tried, the last one's."""
    lines = [line.strip() for line in (error.diag.message_primary or str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    said = lines[-1].removeprefix("- ") if lines[0].startswith("Multiple") else lines[0]
    return said.removeprefix("connection failed: ").removeprefix("connection is bad: ").rstrip(".")
