"""What can go wrong with a call on purpose: a queue per method, and a seeded mix for everything else."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kizami.core.errors import InvalidInputError

_FRACTION_BITS = 64
_SECONDS_MAX = 1_000_000
_OK = 200
_STATUS_MAX = 599
_HTML = "<!DOCTYPE html><html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>"
_AUTOMATIC = "automatic"


class Acceptance(StrEnum):
    """When the sandbox does what a call asks for."""

    AT_ONCE = "at_once"
    NEVER = "never"
    LATE = "late"


class Ending(StrEnum):
    """How a call ends for its caller."""

    ANSWER = "answer"
    CLOSE = "close"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for a call to go wrong; build it with one of the class methods. All seconds are sandbox time.

    A call is held for `hold_s` after its acceptance and before its ending. What is None is left as it would be.
    """

    name: str
    acceptance: Acceptance = Acceptance.AT_ONCE
    ending: Ending = Ending.ANSWER
    hold_s: float = 0.0
    late_s: float = 0.0
    status: int | None = None
    body: Mapping[str, Any] | str | None = None
    retry_after: str | float | None = None
    gate_s: float = 0.0
    warning: str | None = None
    without_ts: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be carried out."""
        seconds = {"hold_s": self.hold_s, "late_s": self.late_s, "gate_s": self.gate_s}
        if isinstance(self.retry_after, int | float):
            seconds["retry_after"] = self.retry_after
        for name, value in seconds.items():
            if not 0 <= value <= _SECONDS_MAX:
                remedy = f"Give 0 to {_SECONDS_MAX:,} seconds."
                raise InvalidInputError(f"The fault {self.name} has {name} {value}.", remedy=remedy, path=name)
        if self.status is not None and not _OK <= self.status <= _STATUS_MAX:
            remedy = f"Give {_OK} to {_STATUS_MAX}."
            raise InvalidInputError(f"The fault {self.name} has status {self.status}.", remedy=remedy, path="status")
        if isinstance(self.retry_after, str) and not (self.retry_after.isascii() and self.retry_after.isprintable()):
            remedy = "Give printable ASCII."
            raise InvalidInputError("A Retry-After can't be sent like this.", remedy=remedy, path="header")

    @classmethod
    def rate_limited(
        cls,
        retry_after: float = 30.0,
        *,
        header: str | None = _AUTOMATIC,
        status: int = 429,
        error: str = "ratelimited",
        closes_gate: bool = False,
    ) -> Fault:
        """Answer that the limit is reached, and do nothing.

        `header` None leaves Retry-After out, another text is sent as it is. `status` 200 hides the error in a success.
        With `closes_gate` calls through the same gate fare no better until `retry_after` has passed.
        """
        return cls(
            "rate_limited",
            Acceptance.NEVER,
            status=status,
            body=_refusal(error),
            retry_after=retry_after if header == _AUTOMATIC else header,
            gate_s=retry_after if closes_gate else 0.0,
        )

    @classmethod
    def refused(cls, error: str) -> Fault:
        """Answer with one of Slack's errors, and do nothing."""
        return cls("refused", Acceptance.NEVER, body=_refusal(error))

    @classmethod
    def server_error(cls, status: int = 500, *, accepted: bool = False, html: bool = True) -> Fault:
        """Answer with a 5xx; whether the call was accepted is not to be seen from it."""
        return cls("server_error", _when(accepted), status=status, body=_HTML if html else _refusal("internal_error"))

    @classmethod
    def html_page(cls, *, accepted: bool = True) -> Fault:
        """Answer 200 with an HTML page."""
        return cls("html_page", _when(accepted), body=_HTML)

    @classmethod
    def empty_body(cls, *, accepted: bool = True) -> Fault:
        """Answer 200 with nothing."""
        return cls("empty_body", _when(accepted), body="")

    @classmethod
    def broken_json(cls, *, accepted: bool = True) -> Fault:
        """Answer 200 with half an answer, labelled as JSON."""
        return cls("broken_json", _when(accepted), body='{"ok": tr')

    @classmethod
    def without_timestamp(cls) -> Fault:
        """Accept the call and answer `ok` without a ts."""
        return cls("without_timestamp", without_ts=True)

    @classmethod
    def with_warning(cls, warning: str = "message_truncated") -> Fault:
        """Accept the call and answer with a warning."""
        return cls("with_warning", warning=warning)

    @classmethod
    def never_accepted(cls, *, reset: bool = False) -> Fault:
        """Close the connection, and do nothing."""
        return cls("never_accepted", Acceptance.NEVER, _lost(reset))

    @classmethod
    def answer_lost(cls, *, reset: bool = False) -> Fault:
        """Accept the call and close the connection without an answer."""
        return cls("answer_lost", Acceptance.AT_ONCE, _lost(reset))

    @classmethod
    def accepted_late(cls, seconds: float = 30.0, *, reset: bool = False) -> Fault:
        """Close the connection now and accept the call later; until then no history shows it."""
        return cls("accepted_late", Acceptance.LATE, _lost(reset), late_s=seconds)

    @classmethod
    def hang(cls, seconds: float = 60.0, *, accepted: bool = False) -> Fault:
        """Say nothing for a while, then close the connection."""
        return cls("hang", _when(accepted), Ending.CLOSE, hold_s=seconds)

    @classmethod
    def slow(cls, seconds: float = 5.0) -> Fault:
        """Accept the call, and answer as one should, but only after a while."""
        return cls("slow", hold_s=seconds)


FAULTS: Mapping[str, Callable[..., Fault]] = MappingProxyType(
    {
        "accepted_late": Fault.accepted_late,
        "answer_lost": Fault.answer_lost,
        "broken_json": Fault.broken_json,
        "empty_body": Fault.empty_body,
        "hang": Fault.hang,
        "html_page": Fault.html_page,
        "never_accepted": Fault.never_accepted,
        "rate_limited": Fault.rate_limited,
        "refused": Fault.refused,
        "server_error": Fault.server_error,
        "slow": Fault.slow,
        "with_warning": Fault.with_warning,
        "without_timestamp": Fault.without_timestamp,
    }
)
"""Every fault by name, as /sandbox/faults takes it."""


@dataclass(frozen=True, slots=True)
class FaultMix:
    """Faults drawn by chance: the same seed gives the n-th call of a method the same fate, whatever else is called."""

    seed: int
    chances: Sequence[tuple[float, Fault]]
    methods: frozenset[str] = frozenset({"chat.postMessage", "chat.update"})

    def __post_init__(self) -> None:
        chances = [chance for chance, _ in self.chances]
        if not all(chance >= 0 for chance in chances) or math.fsum(chances) > 1:
            remedy = "Give numbers from 0 to 1 whose sum is 1 at most."
            raise InvalidInputError(
                f"The chances {chances} are not shares of one whole.", remedy=remedy, path="chances"
            )

    def draw(self, method: str, ordinal: int) -> Fault | None:
        """Return the fault of a method's n-th call."""
        if method not in self.methods:
            return None
        left = _fraction(f"{self.seed}/{method}/{ordinal}")
        for chance, fault in self.chances:
            left -= chance
            if left < 0:
                return fault
        return None


@dataclass(slots=True)
class Faults:
    """The plan: what happens to the calls to come. A queued fault goes before the mix."""

    mix: FaultMix | None = None
    _queues: dict[tuple[str, str | None], deque[Fault]] = field(default_factory=dict)
    _ordinals: dict[str, int] = field(default_factory=dict)

    def fail_next(self, method: str, *faults: Fault, channel: str | None = None) -> None:
        """Queue faults for the next calls of a method, in one channel if it is named, one for each call."""
        self._queues.setdefault((method, channel), deque()).extend(faults)

    def take(self, method: str, channel: str) -> Fault | None:
        """Return the fault of the call that comes now, and strike it off the plan."""
        ordinal = self._ordinals[method] = self._ordinals.get(method, 0) + 1
        for key in ((method, channel), (method, None)):
            if self._queues.get(key):
                return self._queues[key].popleft()
        return None if self.mix is None else self.mix.draw(method, ordinal)

    def waiting(self) -> Mapping[tuple[str, str | None], Sequence[Fault]]:
        """Return the faults still queued, by method and channel."""
        return {key: tuple(queue) for key, queue in self._queues.items() if queue}

    def clear(self) -> None:
        """Forget the queues and the mix."""
        self.mix = None
        self._queues.clear()
        self._ordinals.clear()


def _when(accepted: bool) -> Acceptance:
    return Acceptance.AT_ONCE if accepted else Acceptance.NEVER


def _lost(reset: bool) -> Ending:
    return Ending.RESET if reset else Ending.CLOSE


def _refusal(error: str) -> Mapping[str, Any]:
    return {"ok": False, "error": error}


def _fraction(text: str) -> float:
    """Return a number in [0, 1) that depends on the text alone, in every process and version of Python."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: _FRACTION_BITS // 8]) / (1 << _FRACTION_BITS)
