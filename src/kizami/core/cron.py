"""Cron expressions: five fields, minute precision, read strictly.

    minute  hour  day of month  month  day of week

Numbers, `*`, `,`, `-` and `/` only; day of week 0 to 7, where 0 and 7 are Sunday. A day field is restricted when its
text is anything but exactly `*`; when both are, a day that matches either is enough. What can never match is refused.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, NoReturn

from kizami.core.errors import CronError
from kizami.core.local_minutes import LocalMinutes
from kizami.core.year import WEEKDAYS_ALL, year_days

TEXT_LENGTH_MAX = 1000

_ENTRY = re.compile(r"(?P<range>\*|(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?)(?:/(?P<step>[0-9]+))?")
_BLANKS = re.compile(r"[ \t]+")
_HOURS_PER_DAY = 24
_MINUTES_PER_HOUR = 60
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression; two that mean the same are equal, whatever their texts.

    Of the fields, bit n stands for the value n; `either_day` tells that both day fields are restricted, so that a day
    which matches one of them is enough.
    """

    text: str = dataclasses.field(compare=False)
    minutes: int = dataclasses.field(compare=False)
    hours: int = dataclasses.field(compare=False)
    days: int = dataclasses.field(compare=False)
    months: int = dataclasses.field(compare=False)
    weekdays: int = dataclasses.field(compare=False)
    either_day: bool = dataclasses.field(compare=False)
    local_minutes: LocalMinutes = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.text


class _Field(NamedTuple):
    """One of the five places of an expression."""

    name: str
    first: int
    last: int

    @property
    def span(self) -> int:
        return self.last - self.first + 1


class _Part(NamedTuple):
    """What an expression says in one field; knows how to refuse it."""

    field: _Field
    text: str
    expression: str

    def refuse(self, reason: str, remedy: str) -> NoReturn:
        raise CronError(
            f"Cron expression {self.expression!r}, field {self.field.name} {self.text!r}: {reason}.",
            remedy=remedy,
            text=self.expression,
            field=self.field.name,
            part=self.text,
            reason=reason,
        )


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12),
    _Field("day of week", 0, 7),
)


def parse_cron(text: str) -> Cron:
    """Read a cron expression (rules in docs/timing.md); one that was read lately is remembered.

    Raises CronError, naming the field, the reason and the remedy, for anything that isn't a schedule.
    """
    if not isinstance(text, str):
        raise _unreadable(repr(text)[:40], f"is {type(text).__name__}, not text", 'Write it as "0 9 * * 1-5".')
    if len(text) > TEXT_LENGTH_MAX:
        reason = f"has {len(text)} characters, more than {TEXT_LENGTH_MAX}"
        raise _unreadable(repr(text[:40] + "…"), reason, "Use ranges and steps, or several expressions.")
    return _parse(text)


@lru_cache(maxsize=1024)
def _parse(text: str) -> Cron:
    parts = [_Part(field, part, text) for field, part in zip(_FIELDS, _split(text), strict=True)]
    minutes, hours, days, months, weekdays = map(_read, parts)
    weekdays = (weekdays | weekdays >> 7) & WEEKDAYS_ALL  # only after ranges are read, so that 5-7 is Friday to Sunday
    either_day = parts[2].text != "*" and parts[4].text != "*"
    matching_days = year_days(months, days, weekdays, either=either_day)
    if not any(matching_days):
        parts[2].refuse("none of its months has such a day, so it never fires", "Give a day that occurs in one.")
    times = sum(minutes << _MINUTES_PER_HOUR * hour for hour in range(_HOURS_PER_DAY) if hours >> hour & 1)
    return Cron(text, minutes, hours, days, months, weekdays, either_day, LocalMinutes(times, matching_days))


def _split(text: str) -> list[str]:
    """Return the five texts of an expression."""
    stripped = text.strip(" \t")
    if stripped.lower() in _NICKNAMES:
        raise _unreadable(repr(text), "is a nickname, which isn't read", f'Write "{_NICKNAMES[stripped.lower()]}".')
    texts = _BLANKS.split(stripped) if stripped else []
    if len(texts) != len(_FIELDS):
        remedy = "Write minute, hour, day of month, month, day of week: no seconds, no years, no blank inside a field."
        raise _unreadable(repr(text), f"has {len(texts)} fields instead of five", remedy)
    return texts


def _unreadable(shown: str, reason: str, remedy: str) -> CronError:
    return CronError(f"Cron expression {shown} {reason}.", remedy=remedy, text=shown, reason=reason)


def _read(part: _Part) -> int:
    """Return the values of a field as bits."""
    values = 0
    for entry in part.text.split(","):
        values |= _read_entry(part, entry)
    return values


def _read_entry(part: _Part, entry: str) -> int:
    """Return the values of one entry of a list as bits."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        part.refuse(*_explain(part.field, entry))
    first, last = _read_range(part, match)
    step = _read_step(part, match)
    return sum(1 << value for value in range(first, last + 1, step))


def _read_range(part: _Part, match: re.Match[str]) -> tuple[int, int]:
    """Return the first and last value that an entry names."""
    least, most = part.field.first, part.field.last
    if match["range"] == "*":
        return least, most
    first = int(match["first"])
    last = first if match["last"] is None else int(match["last"])
    for value in (first, last):
        if not least <= value <= most:
            part.refuse(f"{value} is not in {least} to {most}", f"Use values from {least} to {most}.")
    if first > last:
        remedy = f'Write "{first}-{most},{least}-{last}" if it is meant to wrap.'
        part.refuse(f"the range {match['range']} runs backwards", remedy)
    return first, last


def _read_step(part: _Part, match: re.Match[str]) -> int:
    """Return the step of an entry, 1 if it has none."""
    if match["step"] is None:
        return 1
    step, span = int(match["step"]), part.field.span
    if match["range"] == match["first"]:
        remedy = f'Write "{match["first"]}-{part.field.last}/{match["step"]}" if it is where the steps begin.'
        part.refuse(f"{match[0]} gives a step to a single number", remedy)
    if not 1 <= step <= span:
        part.refuse(f"the step {step} is not in 1 to {span}", f"Use a step from 1 to {span}.")
    return step


def _explain(field: _Field, entry: str) -> tuple[str, str]:
    """Return why an entry can't be read, and what to write instead."""
    if not entry:
        return "an entry of the list is empty", "Remove the comma that has nothing beside it."
    if not entry.isascii():
        return f"{entry!r} has characters outside ASCII", "Use the digits 0 to 9 and the signs * , - / only."
    if re.search("[A-Za-z]{2}", entry):
        return f"{entry!r} is a name, and names are not read", f"Write the number, {field.first} to {field.last}."
    if re.search("[A-Za-z?#!$@]", entry):
        return f"{entry!r} is an extension of other systems", "Write only numbers, * , - and /."
    return f"{entry!r} is not a number, a range or a step", 'Write entries such as "5", "1-5", "*/15" or "0-30/10".'
