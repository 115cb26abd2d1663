"""The next fire time of a cron expression, for anyone: `kizami.next_fire`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kizami.core.cron import Cron, parse_cron
from kizami.core.errors import CronError
from kizami.core.instants import next_instant
from kizami.core.times import to_epoch_s
from kizami.core.zone import TimeZone, load_zone

Expression = str | Cron


def next_fire(expression: Expression | Iterable[Expression], time_zone: str | TimeZone, after: datetime) -> datetime:
    """Return the first fire time strictly after an aware datetime, as a datetime in the zone with the right `fold`.

    Several expressions mean their union. A parsed expression and a loaded zone make it fast. Raises CronError,
    TimeZoneError, or InvalidInputError for a datetime without a zone.
    """
    zone = time_zone if isinstance(time_zone, TimeZone) else load_zone(time_zone)
    at_s = next_fire_s(expression, zone, to_epoch_s(after, name="after"))
    return datetime.fromtimestamp(at_s, zone.tzinfo)


def next_fire_s(expression: Expression | Iterable[Expression], zone: TimeZone, after_s: int) -> int:
    """Return the first fire time strictly after an instant, both in whole seconds since 1970, UTC."""
    if isinstance(expression, Cron):
        found = next_instant(expression.local_minutes, zone, after_s)
    else:
        each = (next_instant(cron.local_minutes, zone, after_s) for cron in _crons(expression))
        found = min((at_s for at_s in each if at_s is not None), default=None)
    if found is None:
        message = f"Cron expression {expression} has no further instant in {zone}."
        raise CronError(message, remedy="Give an expression whose time still comes.")
    return found


def _crons(expression: str | Iterable[Expression]) -> tuple[Cron, ...]:
    """Return the parsed expressions of one text or of several."""
    if isinstance(expression, str) or not isinstance(expression, Iterable):
        return (parse_cron(expression),)
    return tuple(one if isinstance(one, Cron) else parse_cron(one) for one in expression)
