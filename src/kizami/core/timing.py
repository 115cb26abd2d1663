"""When a schedule fires: the closed set of timings, and every question about their plans.

The plan of a cron timing is every instant its expressions stand for in its zone. The plan of an interval is
`anchor + n * every` for n = 1, 2, 3, …; its anchor is the instant of registration or any planned instant. All times are
epoch milliseconds, UTC. Cron timings ignore the anchor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, assert_never

from kizami.core.cron import Cron, parse_cron
from kizami.core.errors import CronError, DefinitionError, InvalidInputError
from kizami.core.instants import count_instants, is_instant, last_instant, next_instant
from kizami.core.local_minutes import unite
from kizami.core.times import MS_PER_SECOND, EpochMs, to_ms
from kizami.core.zone import TimeZone, load_zone, tzdata_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kizami.core.local_minutes import LocalMinutes

INTERVAL_MS_MIN = 1000
INTERVAL_MS_MAX = 36_500 * 86_400_000
"""Past it, planned times would leave the years that have local times."""
EXPRESSIONS_MAX = 50


@dataclass(frozen=True, slots=True)
class CronTiming:
    """One expression or several in a time zone; an instant in two of them is one tick."""

    crons: tuple[Cron, ...]
    zone: TimeZone

    def __post_init__(self) -> None:
        if not 1 <= len(self.crons) <= EXPRESSIONS_MAX:
            count = len(self.crons)
            raise CronError(
                f"cron has {count} expressions.", remedy=f"Give 1 to {EXPRESSIONS_MAX} of them.", count=count
            )

    @property
    def expressions(self) -> tuple[str, ...]:
        """Return the expressions as they were written."""
        return tuple(cron.text for cron in self.crons)


@dataclass(frozen=True, slots=True)
class IntervalTiming:
    """A fixed number of milliseconds between instants, which no time zone touches."""

    every_ms: int

    def __post_init__(self) -> None:
        if type(self.every_ms) is not int or self.every_ms < INTERVAL_MS_MIN:
            message = f"every is {self.every_ms!r}, not a whole number of milliseconds of at least {INTERVAL_MS_MIN}."
            raise DefinitionError(message, remedy="Give timedelta(seconds=1) or more.", every=self.every_ms)
        if self.every_ms > INTERVAL_MS_MAX:
            message = "every is longer than 100 years."
            raise DefinitionError(message, remedy="Give timedelta(days=36_500) or less.", every=self.every_ms)


Timing = CronTiming | IntervalTiming


class Misfire(NamedTuple):
    """What to do about a plan: the instant to fire, the planned ones behind it that are dropped, and the plan after."""

    fire: EpochMs | None
    next: EpochMs
    dropped: int
    dropped_first: EpochMs | None
    dropped_last: EpochMs | None


def cron_timing(expressions: str | Iterable[str], time_zone: str = "UTC") -> CronTiming:
    """Return the timing of one expression or several. Raises CronError or TimeZoneError."""
    texts: object = (expressions,) if isinstance(expressions, str) else expressions
    if isinstance(texts, bytes) or not isinstance(texts, Iterable):
        message = f"cron is of type {type(expressions).__name__}, not text."
        raise CronError(message, remedy='Give "0 9 * * 1-5", or a list of such.')
    return CronTiming(tuple(parse_cron(text) for text in texts), load_zone(time_zone))


def interval_timing(every: timedelta | int) -> IntervalTiming:
    """Return the timing of an interval, a timedelta or milliseconds. Raises DefinitionError if it is under a second."""
    if not isinstance(every, timedelta):
        return IntervalTiming(every)
    try:
        return IntervalTiming(to_ms(every, name="every"))
    except InvalidInputError as error:
        raise DefinitionError(error.message, remedy=error.remedy, every=every) from error


def next_after(timing: Timing, after_ms: EpochMs, anchor_ms: EpochMs) -> EpochMs:
    """Return the first planned instant strictly after an instant.

    Raises CronError if there is none before the year 10000.
    """
    match timing:
        case CronTiming(crons, zone):
            found = (next_instant(cron.local_minutes, zone, after_ms // MS_PER_SECOND) for cron in crons)
            at_s = min((at_s for at_s in found if at_s is not None), default=None)
            if at_s is None:
                message = f"Cron {' and '.join(timing.expressions)} has no further instant in {zone}."
                raise CronError(message, remedy="Use a time that occurs there.", expressions=timing.expressions)
            return at_s * MS_PER_SECOND
        case IntervalTiming(every_ms):
            return anchor_ms + every_ms * max(1, (after_ms - anchor_ms) // every_ms + 1)
        case _:
            assert_never(timing)


def first_fire(timing: Timing, registered_ms: EpochMs) -> EpochMs:
    """Return the first planned instant of a schedule that is registered now: never now, always strictly after."""
    return next_after(timing, registered_ms, registered_ms)


def is_planned(timing: Timing, at_ms: EpochMs, anchor_ms: EpochMs) -> bool:
    """Tell whether an instant is on the plan."""
    match timing:
        case CronTiming(crons, zone):
            at_s, rest = divmod(at_ms, MS_PER_SECOND)
            return rest == 0 and any(is_instant(cron.local_minutes, zone, at_s) for cron in crons)
        case IntervalTiming(every_ms):
            return at_ms > anchor_ms and (at_ms - anchor_ms) % every_ms == 0
        case _:
            assert_never(timing)


def latest_at_or_before(timing: Timing, now_ms: EpochMs, anchor_ms: EpochMs) -> EpochMs | None:
    """Return the last planned instant that isn't after now; None if there is none yet."""
    match timing:
        case CronTiming(crons, zone):
            found = (last_instant(cron.local_minutes, zone, now_ms // MS_PER_SECOND) for cron in crons)
            return max((at_s * MS_PER_SECOND for at_s in found if at_s is not None), default=None)
        case IntervalTiming(every_ms):
            passed = (now_ms - anchor_ms) // every_ms
            return anchor_ms + every_ms * passed if passed >= 1 else None
        case _:
            assert_never(timing)


def count_between(timing: Timing, after_ms: EpochMs, until_ms: EpochMs, anchor_ms: EpochMs) -> int:
    """Return how many planned instants lie in (after, until], exactly, by arithmetic however many there are."""
    match timing:
        case CronTiming(_, zone):
            after_s, until_s = after_ms // MS_PER_SECOND, until_ms // MS_PER_SECOND
            return sum(count_instants(part, zone, after_s, until_s) for part in _parts(timing))
        case IntervalTiming(every_ms):
            passed = max(0, (after_ms - anchor_ms) // every_ms)
            return max(0, (until_ms - anchor_ms) // every_ms - passed)
        case _:
            assert_never(timing)


def fires(timing: Timing, after_ms: EpochMs, anchor_ms: EpochMs) -> Iterator[EpochMs]:
    """Yield the planned instants strictly after an instant, one after the other, without end."""
    while True:
        after_ms = next_after(timing, after_ms, anchor_ms)
        yield after_ms


def decide_misfire(timing: Timing, planned_ms: EpochMs, now_ms: EpochMs, anchor_ms: EpochMs) -> Misfire:
    """Decide about the plan `planned_ms`, the oldest that hasn't fired.

    Not yet due: nothing. Due: it fires, once; planned instants between it and now are dropped; the next is after now.
    """
    if now_ms < planned_ms:
        return Misfire(None, planned_ms, 0, None, None)
    following = next_after(timing, now_ms, anchor_ms)
    dropped = count_between(timing, planned_ms, now_ms, anchor_ms)
    if not dropped:
        return Misfire(planned_ms, following, 0, None, None)
    first = next_after(timing, planned_ms, anchor_ms)
    return Misfire(planned_ms, following, dropped, first, latest_at_or_before(timing, now_ms, anchor_ms))


def zone_of(timing: Timing) -> TimeZone:
    """Return the time zone that a timing's local times are in; UTC for an interval."""
    return timing.zone if isinstance(timing, CronTiming) else load_zone("UTC")


def local_ms(timing: Timing, at_ms: EpochMs) -> int:
    """Return what the schedule's local clock shows at an instant, counted as if that clock were UTC's."""
    return at_ms + zone_of(timing).offset_at(at_ms // MS_PER_SECOND) * MS_PER_SECOND


def zone_data_of(timing: Timing) -> str | None:
    """Return the edition of the time-zone database by which a timing is planned; None where it plays no part."""
    return tzdata_version() if isinstance(timing, CronTiming) and timing.zone.name != "UTC" else None


def to_json(timing: Timing) -> dict[str, object]:
    """Return a timing as JSON, with the texts as they were written."""
    match timing:
        case CronTiming(_, zone):
            return {"kind": "cron", "expressions": list(timing.expressions), "time_zone": zone.name}
        case IntervalTiming(every_ms):
            return {"kind": "interval", "every_ms": every_ms}
        case _:
            assert_never(timing)


def from_json(stored: object) -> Timing:
    """Return the timing that `to_json` gave. Raises DefinitionError if it isn't one, or its zone is no longer known."""
    match stored:
        case {"kind": "cron", "expressions": [*expressions], "time_zone": str(time_zone)}:
            return cron_timing([str(text) for text in expressions], time_zone)
        case {"kind": "interval", "every_ms": int(every_ms)}:
            return interval_timing(every_ms)
        case _:
            raise DefinitionError(
                f"The stored timing {str(stored)[:200]} is not one.", remedy="Define the schedule again."
            )


def fingerprint(timing: Timing) -> str:
    """Return 32 hexadecimal digits that two timings share exactly when they mean the same, whatever their texts."""
    match timing:
        case CronTiming(_, zone):
            parts = [f"{part.times:x}:{':'.join(f'{days:x}' for days in part.year_days)}" for part in _parts(timing)]
            meaning = f"cron {zone.name} {' '.join(parts)}"
        case IntervalTiming(every_ms):
            meaning = f"interval {every_ms}"
        case _:
            assert_never(timing)
    return hashlib.sha256(meaning.encode()).hexdigest()[:32]


def _parts(timing: CronTiming) -> tuple[LocalMinutes, ...]:
    """Return the minutes of all expressions together, in parts that share no day."""
    return unite(tuple(cron.local_minutes for cron in timing.crons))
