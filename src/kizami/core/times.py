"""Instants and lengths of time at the border: aware datetimes and timedeltas outside, integer milliseconds inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kizami.core.errors import InvalidInputError
from kizami.core.zone import BEGINNING_S, END_S, TimeZone

EpochMs = int
MS_PER_SECOND = 1000
MS_PER_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER_DAY = 86_400
_SHOWN_BELOW = 10**30
_MILLISECOND = timedelta(milliseconds=1)


def to_epoch_ms(at: datetime, *, name: str = "time") -> EpochMs:
    """Return the millisecond that an aware datetime lies in.

    Raises InvalidInputError, naming the value as `name`, if it has no time zone or isn't a datetime.
    """
    try:
        since = at - _EPOCH
    except TypeError as error:
        raise _not_an_instant(at, name) from error
    return since.days * MS_PER_DAY + since.seconds * MS_PER_SECOND + since.microseconds // 1000


def to_epoch_s(at: datetime, *, name: str = "time") -> int:
    """Return the second that an aware datetime lies in; raises as `to_epoch_ms` does."""
    try:
        since = at - _EPOCH
    except TypeError as error:
        raise _not_an_instant(at, name) from error
    return since.days * _SECONDS_PER_DAY + since.seconds


def to_datetime(at_ms: EpochMs, zone: TimeZone | None = None, *, name: str = "time") -> datetime:
    """Return an instant as an aware datetime in a zone, UTC by default.

    Raises InvalidInputError, naming the value as `name`, out of the years that have local times.
    """
    at_s, milliseconds = divmod(_checked(at_ms, name), MS_PER_SECOND)
    at = datetime.fromtimestamp(at_s, UTC if zone is None else zone.tzinfo)
    return at.replace(microsecond=milliseconds * 1000) if milliseconds else at


def to_ms(length: timedelta, *, name: str = "length", least_ms: int | None = None) -> int:
    """Return a length of time as whole milliseconds.

    Raises InvalidInputError, naming the value as `name`, if it has a fraction of a millisecond or is under `least_ms`.
    """
    if not isinstance(length, timedelta):
        raise _refusal(
            f"{name} is {type(length).__name__}, not a timedelta.", "Give, for example, timedelta(minutes=5).", name
        )
    whole, rest = divmod(length, _MILLISECOND)
    if rest:
        raise _refusal(f"{name} {length} is not a whole number of milliseconds.", "Round it to milliseconds.", name)
    if least_ms is not None and whole < least_ms:
        least = timedelta(milliseconds=least_ms)
        raise _refusal(f"{name} {length} is less than {least_ms} ms.", f"Give at least {least}.", name)
    return whole


def format_local(at_ms: EpochMs, zone: TimeZone) -> str:
    """Return an instant for people, as `2026-03-08 03:00:00 America/New_York (GMT-04:00)`.

    Zone and offset in force are always there; milliseconds only when there are any.
    """
    at = to_datetime(at_ms, zone)
    shown = at.strftime("%Y-%m-%d %H:%M:%S").rjust(len("2026-03-08 03:00:00"), "0")
    fraction = f".{at_ms % MS_PER_SECOND:03}" if at_ms % MS_PER_SECOND else ""
    return f"{shown}{fraction} {zone.name} ({format_offset(zone.offset_at(at_ms // MS_PER_SECOND))})"


def format_offset(offset_s: int) -> str:
    """Return an offset from UTC for people, as `GMT+09:00`; seconds only when there are any."""
    minutes, seconds = divmod(abs(offset_s), 60)
    shown = f"GMT{'-' if offset_s < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{shown}:{seconds:02}" if seconds else shown


def _checked(at_ms: EpochMs, name: str) -> EpochMs:
    """Return the instant itself if it lies in the years that have local times."""
    if not BEGINNING_S <= at_ms // MS_PER_SECOND < END_S:
        shown = f" {at_ms} ms" if abs(at_ms) < _SHOWN_BELOW else ""
        message = f"{name}{shown} is outside the years 1 to 9999."
        raise _refusal(message, "Give milliseconds since 1970, UTC.", name)
    return at_ms


def _not_an_instant(at: object, name: str) -> InvalidInputError:
    """Return the error for what should have been an aware datetime."""
    if not isinstance(at, datetime):
        return _refusal(f"{name} is {type(at).__name__}, not a datetime.", "Give a datetime with a time zone.", name)
    remedy = "Give it one, for example datetime(2026, 1, 1, 9, tzinfo=UTC) or datetime.now(UTC)."
    return _refusal(f"{name} {at.isoformat()} has no time zone, so it names no instant.", remedy, name)


def _refusal(message: str, remedy: str, name: str) -> InvalidInputError:
    return InvalidInputError(message, remedy=remedy, path=name)
