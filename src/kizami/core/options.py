"""The options of a job: what a performer declares, what an enqueue may change, what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, TypedDict, Unpack, cast

from kizami.core.backoff import Backoff
from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.policy import Policy, Retention
from kizami.core.times import to_epoch_ms, to_ms

PRIORITY_MIN: Final = -(2**31)
PRIORITY_MAX: Final = 2**31 - 1
MAX_ATTEMPTS_MAX: Final = 1_000_000
KEY_CHARACTERS_MAX: Final = 255
TIMEOUT_MS_MAX: Final = 10 * 366 * 86_400_000
UNIQUE_FOR_MS_MAX: Final = 366 * 86_400_000
DAY_MS: Final = 86_400_000
OF_THE_CALL: Final = ("connection",)
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


class Guarantee(StrEnum):
    """What may happen to a job whose worker vanished: run again, or never again."""

    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"


class OptionChanges(TypedDict, total=False):
    """What an enqueue may say about its job; what is left out comes from the performer."""

    priority: int
    max_attempts: int
    backoff: Backoff
    timeout: timedelta
    guarantee: Guarantee | str
    unique_for: timedelta


class PerformerChanges(OptionChanges, total=False):
    """What a performer declares: the options of its jobs, and how its binding is run."""

    policy: Policy
    retention: Retention
    shards: int
    requires_concurrency_key: bool
    requires_unique_key: bool


class EnqueueChanges(OptionChanges, total=False):
    """The options of one enqueue: those of a job, its keys, and when it first becomes due."""

    concurrency_key: str
    unique_key: str
    partition_key: str
    delay: timedelta
    run_at: datetime


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Checked options of a job. Durations are whole milliseconds.

    Jobs of one `concurrency_key` run few at a time (one, unless the policy says more). While `unique_key` is reserved,
    for `unique_for_ms` from the enqueue, another job with it isn't added. `partition_key` chooses the shard.
    """

    priority: int = 0
    max_attempts: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    timeout_ms: int = 60_000
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    concurrency_key: str | None = None
    unique_key: str | None = None
    unique_for_ms: int = DAY_MS
    partition_key: str | None = None

    def changed(self, owner: str, changes: OptionChanges) -> JobOptions:
        """Return these options with `changes` applied; raise DefinitionError naming `owner`."""
        if not changes:
            return self
        values: dict[str, Any] = dict(changes)
        for name in values:
            if name in OF_THE_CALL:
                raise DefinitionError(
                    f"{owner}: {name} is not an option of a job.",
                    remedy=f"Give {name} to enqueue or enqueue_many.",
                    field=name,
                )
            if name not in _CHECKS:
                raise DefinitionError(f"{owner}: unknown option {name}.", remedy=_known(name), field=name)
        checked: dict[str, Any] = dict(_CHECKS[name](owner, value) for name, value in values.items())
        return replace(self, **checked)


@dataclass(frozen=True, slots=True)
class FirstDue:
    """When a job first becomes due: after a delay, at an instant, or (neither) at once. Milliseconds."""

    delay_ms: int | None = None
    run_at_ms: int | None = None


_AT_ONCE: Final = FirstDue()


def split_enqueue(owner: str, changes: EnqueueChanges) -> tuple[OptionChanges, FirstDue]:
    """Separate the due time from the job options; raise DefinitionError when both delay and run_at are given."""
    if not changes:
        return {}, _AT_ONCE
    rest: dict[str, Any] = dict(changes)
    delay, run_at = rest.pop("delay", None), rest.pop("run_at", None)
    if delay is not None and run_at is not None:
        raise DefinitionError(f"{owner}: delay and run_at are both given.", remedy="Give one of them.", field="delay")
    if delay is not None:
        return _options(rest), FirstDue(delay_ms=to_ms(delay, name=f"{owner}: delay", least_ms=0))
    if run_at is not None:
        return _options(rest), FirstDue(run_at_ms=to_epoch_ms(run_at, name=f"{owner}: run_at"))
    return _options(rest), FirstDue()


def _known(name: str) -> str:
    """Return the remedy for an option that doesn't exist: the nearest that does, and all."""
    known, more = sorted(_CHECKS), sorted({"delay", "run_at", *OF_THE_CALL})
    near = "".join(f"Did you mean {found}? " for found in get_close_matches(name, [*known, *more], 1))
    return f"{near}Known: {', '.join(known)}; where a job is enqueued also {', '.join(more)}."


def _options(values: dict[str, Any]) -> OptionChanges:
    return cast("OptionChanges", values)


def _whole(owner: str, name: str, value: object, least: int, most: int) -> tuple[str, int]:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DefinitionError(
            f"{owner}: {name} is {value!r}.", remedy=f"Give a whole number from {least} to {most}.", field=name
        )
    return name, value


def _backoff(owner: str, value: object) -> tuple[str, Backoff]:
    if not isinstance(value, Backoff):
        raise DefinitionError(f"{owner}: backoff is {value!r}.", remedy="Give a kizami.Backoff.", field="backoff")
    return "backoff", value


def _guarantee(owner: str, value: object) -> tuple[str, Guarantee]:
    try:
        return "guarantee", Guarantee(str(value))
    except ValueError:
        remedy = "Use 'at-least-once' or 'at-most-once'."
        raise DefinitionError(f"{owner}: guarantee is {value!r}.", remedy=remedy, field="guarantee") from None


def _length(owner: str, name: str, value: object, most_ms: int) -> tuple[str, int]:
    try:
        length = to_ms(cast("timedelta", value), name=f"{owner}: {name}", least_ms=1)
    except InvalidInputError as error:
        raise DefinitionError(error.message, remedy=error.remedy, field=name) from error
    if length > most_ms:
        remedy = f"Give at most {timedelta(milliseconds=most_ms)}."
        raise DefinitionError(f"{owner}: {name} {value} is too long.", remedy=remedy, field=name)
    return f"{name}_ms", length


def _key(owner: str, name: str, value: object) -> tuple[str, str]:
    """Check a key: text that every store can hold and compare byte for byte."""
    if isinstance(value, str) and 1 <= len(value) <= KEY_CHARACTERS_MAX and not _UNSTORABLE.search(value):
        return name, value
    raise DefinitionError(
        f"{owner}: {name} is {value!r}.",
        remedy=f"Give text of 1 to {KEY_CHARACTERS_MAX} characters, without NUL and lone surrogates.",
        field=name,
    )


_CHECKS: Final[dict[str, Callable[[str, object], tuple[str, object]]]] = {
    "priority": lambda owner, value: _whole(owner, "priority", value, PRIORITY_MIN, PRIORITY_MAX),
    "max_attempts": lambda owner, value: _whole(owner, "max_attempts", value, 1, MAX_ATTEMPTS_MAX),
    "backoff": _backoff,
    "timeout": lambda owner, value: _length(owner, "timeout", value, TIMEOUT_MS_MAX),
    "guarantee": _guarantee,
    "concurrency_key": lambda owner, value: _key(owner, "concurrency_key", value),
    "unique_key": lambda owner, value: _key(owner, "unique_key", value),
    "unique_for": lambda owner, value: _length(owner, "unique_for", value, UNIQUE_FOR_MS_MAX),
    "partition_key": lambda owner, value: _key(owner, "partition_key", value),
}

__all__ = ["EnqueueChanges", "FirstDue", "Guarantee", "JobOptions", "OptionChanges", "Unpack", "split_enqueue"]
