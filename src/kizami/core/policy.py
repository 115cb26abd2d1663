"""The flow control of a binding: what its performer declares, and what operators change without a deploy."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypedDict, cast

from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.times import to_ms

CONCURRENCY_MAX: Final = 100_000
TOKENS_MAX: Final = 1_000_000
INTERVAL_MS_MAX: Final = 31 * 86_400_000
AGING_MS_MAX: Final = 30 * 86_400_000
"""With priorities of 32 bits, an order key stays far inside 64 bits."""

GRACE_MS_MAX: Final = 30 * 86_400_000
RETENTION_MS_MAX: Final = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: starts full with `tokens`, refills them evenly over `interval`; each start takes one."""

    tokens: int
    interval: timedelta
    interval_ms: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _whole("Rate", "tokens", self.tokens, TOKENS_MAX)
        object.__setattr__(self, "interval_ms", _milliseconds("Rate", "interval", self.interval, 1, INTERVAL_MS_MAX))


class PolicyChanges(TypedDict, total=False):
    """What an override may change; what is left out stays as declared."""

    concurrency: int
    rate: Rate | None
    per_key_concurrency: int
    aging_interval: timedelta | None
    reaper_grace: timedelta


@dataclass(frozen=True, slots=True)
class Policy:
    """How many jobs of a binding (of each of its shards) run at once and start in a time, over all workers.

    `concurrency` at once, `per_key_concurrency` of one concurrency_key; `rate` limits starts. Having waited for
    `aging_interval` is worth one priority point (None: strict priority, then due time). A job silent for its timeout
    + `reaper_grace` is taken from its worker. Raises DefinitionError naming the field.
    """

    concurrency: int = 100
    rate: Rate | None = None
    per_key_concurrency: int = 1
    aging_interval: timedelta | None = timedelta(seconds=60)
    reaper_grace: timedelta = timedelta(seconds=30)
    aging_ms: int | None = field(init=False, compare=False, repr=False)
    grace_ms: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _whole("Policy", "concurrency", self.concurrency, CONCURRENCY_MAX)
        _whole("Policy", "per_key_concurrency", self.per_key_concurrency, CONCURRENCY_MAX)
        rate: object = self.rate
        if rate is not None and not isinstance(rate, Rate):
            remedy = "Give kizami.Rate(tokens, interval) or None."
            raise DefinitionError(f"Policy: rate is {rate!r}.", remedy=remedy, field="rate")
        aging = self.aging_interval
        aging_ms = None if aging is None else _milliseconds("Policy", "aging_interval", aging, 1, AGING_MS_MAX)
        object.__setattr__(self, "aging_ms", aging_ms)
        object.__setattr__(
            self, "grace_ms", _milliseconds("Policy", "reaper_grace", self.reaper_grace, 0, GRACE_MS_MAX)
        )

    def changed(self, changes: PolicyChanges) -> Policy:
        """Return this policy with an override laid over it. Raises DefinitionError."""
        unknown = sorted(set(changes) - set(PolicyChanges.__annotations__))
        if unknown:
            remedy = f"Known: {', '.join(PolicyChanges.__annotations__)}."
            raise DefinitionError(f"Policy: unknown field {unknown[0]}.", remedy=remedy, field=unknown[0])
        return replace(self, **changes)

    def place(self, priority: int, first_due_at: int) -> tuple[int, int]:
        """Return a job's place in the order, (rank, order_key): smaller goes first. It never changes with time.

        With aging, effective priority is priority + waited / aging; of two jobs the one with the smaller
        `first_due_at - priority * aging` is always ahead. Without, priority decides, then the due time.
        """
        rank, lead_ms = self.rank_and_lead(priority)
        return rank, first_due_at - lead_ms

    def rank_and_lead(self, priority: int) -> tuple[int, int]:
        """Return a job's rank, and how many milliseconds its order_key is before its first due time."""
        return (-priority, 0) if self.aging_ms is None else (0, priority * self.aging_ms)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long ended jobs of a binding are kept: COMPLETED and CANCELLED ones, FAILED and STALLED ones."""

    completed: timedelta = timedelta(days=7)
    failed: timedelta = timedelta(days=7)
    completed_ms: int = field(init=False, compare=False, repr=False)
    failed_ms: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("completed", "failed"):
            length = _milliseconds("Retention", name, getattr(self, name), 0, RETENTION_MS_MAX)
            object.__setattr__(self, f"{name}_ms", length)


def encode_changes(changes: PolicyChanges) -> str:
    """Return an override (or a whole policy's fields) as JSON, durations in whole milliseconds."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        match value:
            case Rate():
                values[name] = [value.tokens, value.interval_ms]
            case timedelta():
                values[name] = to_ms(value)
            case _:
                values[name] = value
    return json.dumps(values, separators=(",", ":"), sort_keys=True)


def encode_policy(policy: Policy) -> str:
    """Return a whole policy as JSON."""
    return encode_changes(
        cast("PolicyChanges", {name: getattr(policy, name) for name in PolicyChanges.__annotations__})
    )


def decode_changes(text: str) -> PolicyChanges:
    """Return stored changes; fields of a newer release are left out, they are not read as "no limit"."""
    values: dict[str, Any] = {}
    for name, value in json.loads(text).items():
        match name:
            case "rate":
                values[name] = None if value is None else Rate(value[0], timedelta(milliseconds=value[1]))
            case "aging_interval" | "reaper_grace":
                values[name] = None if value is None else timedelta(milliseconds=value)
            case "concurrency" | "per_key_concurrency":
                values[name] = value
            case _:
                continue
    return cast("PolicyChanges", values)


@lru_cache(maxsize=1_024)
def effective_policy(declared: str, override: str | None) -> Policy:
    """Return the policy in force from its two stored texts; remembered, since every claim asks."""
    policy = Policy().changed(decode_changes(declared))
    return policy if override is None else policy.changed(decode_changes(override))


def _whole(owner: str, name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise DefinitionError(
            f"{owner}: {name} is {value!r}.", remedy=f"Give a whole number from 1 to {most}.", field=name
        )


def _milliseconds(owner: str, name: str, value: timedelta, least: int, most: int) -> int:
    try:
        length = to_ms(value, name=f"{owner}: {name}", least_ms=least)
    except InvalidInputError as error:
        raise DefinitionError(error.message, remedy=error.remedy, field=name) from error
    if length > most:
        raise DefinitionError(
            f"{owner}: {name} {value} is too long.", remedy=f"Give at most {timedelta(milliseconds=most)}.", field=name
        )
    return length
