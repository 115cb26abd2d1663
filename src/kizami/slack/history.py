"""Looking for messages that may have been posted: by their delivery id, in the channel's history.

Absence is concluded only from a reading of the whole window since the attempt that met no error. A reading that was cut
short (by its budget, by Slack's limit of one call a minute) goes on from its last page at the next deliver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kizami.slack.errors import ApiError, SlackError
from kizami.slack.message import EVENT_TYPE
from kizami.slack.policy import LOOK_UP
from kizami.slack.posting import Posted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.times import EpochMs
    from kizami.engine.context import JobContext
    from kizami.slack.client import Slack
    from kizami.store.protocol import Intent

HISTORY: Final = "conversations.history"
MARGIN_MS: Final = 300_000
"""How far Slack's clock, which makes the ts, may be behind ours."""

_PAGE: Final = 200
_UNREADABLE: Final = frozenset(
    {
        "missing_scope",
        "not_in_channel",
        "channel_not_found",
        "no_permission",
        "not_allowed_token_type",
        "access_denied",
        "method_not_supported_for_channel_type",
    },
)


class Finding(StrEnum):
    """What a look-up learned."""

    FOUND = "found"
    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A finding; `posted` is the earliest copy of `copies`, `reason` says why nothing could be concluded."""

    finding: Finding
    posted: Posted | None = None
    copies: int = 0
    reason: str = ""


@dataclass(slots=True)
class _Reading:
    """One pass over a channel's history, newest first, from `begun_at` back to `oldest_ms`."""

    oldest_ms: EpochMs
    begun_at: EpochMs
    cursor: str = ""
    complete: bool = False
    found: dict[tuple[str, int], list[str]] = field(default_factory=dict)


class History:
    """A channel's history as far as it was read; `begin` gives a deliver its own budget of calls."""

    def __init__(self, slack: Slack, channel: str, *, calls: int = 10, lag_ms: int = 5_000) -> None:
        self._slack = slack
        self._channel = channel
        self._calls = calls
        self._calls_left = calls
        self._lag_ms = lag_ms
        self._reading: _Reading | None = None
        self._trouble: LookedUp | None = None

    def begin(self) -> None:
        """Start a deliver: a new budget, and what went wrong before may work now."""
        self._calls_left = self._calls
        self._trouble = None
        if self._reading is not None and self._reading.complete:
            self._reading = None  # what was absent then may have been posted since

    @property
    def is_stuck(self) -> bool:
        """Tell whether nothing more can be learned before the next `begin`."""
        return self._trouble is not None and self._trouble.finding is Finding.INCOMPLETE

    async def find(
        self, job: JobContext, delivery: str, intents: Sequence[Intent], since: EpochMs | None = None
    ) -> LookedUp:
        """Look for the message of one of these attempts; `since` lets one reading serve older intents too."""
        keys = [(delivery, intent.attempt) for intent in intents]
        oldest = min(intent.attempted_at for intent in intents)
        settled_at = max(intent.attempted_at for intent in intents) + self._lag_ms
        found = self._known(keys)
        if found is None and not self._covers(oldest, settled_at):
            await self._read(job, min(oldest, since or oldest), settled_at)
            found = self._known(keys)
        if found is None and self._is_too_young(settled_at):
            # What Slack has accepted may take a moment to appear: look once more after that moment.
            await job.runtime.clock.sleep(self._lag_ms / 1000)
            await self._read(job, min(oldest, since or oldest), settled_at)
            found = self._known(keys)
        return found or self._trouble or LookedUp(Finding.ABSENT)

    def _known(self, keys: Sequence[tuple[str, int]]) -> LookedUp | None:
        found = self._reading.found if self._reading else {}
        copies = sorted((ts for key in keys for ts in found.get(key, ())), key=_order)
        return LookedUp(Finding.FOUND, Posted(self._channel, copies[0]), len(copies)) if copies else None

    def _covers(self, oldest: EpochMs, settled_at: EpochMs) -> bool:
        reading = self._reading
        return (
            reading is not None and reading.complete and reading.oldest_ms <= oldest and reading.begun_at >= settled_at
        )

    def _is_too_young(self, settled_at: EpochMs) -> bool:
        reading = self._reading
        return self._trouble is None and reading is not None and reading.complete and reading.begun_at < settled_at

    async def _read(self, job: JobContext, oldest: EpochMs, settled_at: EpochMs) -> None:
        """Read to the end, going on with an unfinished reading where that is enough."""
        reading, now = self._reading, await job.store.schedules.now()
        # An unfinished reading goes on, unless it began too early; after a step back of the clock nobody can tell.
        if (
            reading is None
            or reading.complete
            or reading.oldest_ms > oldest
            or not settled_at <= reading.begun_at <= now
        ):
            reading = self._reading = _Reading(oldest, now)
        while self._trouble is None and not reading.complete:
            if self._calls_left <= 0:
                self._trouble = LookedUp(Finding.INCOMPLETE, reason="the look-ups of this deliver are used up")
                return
            self._calls_left -= 1
            await self._read_page(reading)

    async def _read_page(self, reading: _Reading) -> None:
        start = max(0, reading.oldest_ms - MARGIN_MS)
        window: dict[str, Any] = {"oldest": f"{start // 1000}.{start % 1000:03}000", "limit": _PAGE}
        page = {"cursor": reading.cursor} if reading.cursor else {}
        arguments = {"channel": self._channel, "include_all_metadata": True, **window, **page}
        try:
            body = await self._slack.call(HISTORY, arguments, LOOK_UP)
        except SlackError as error:
            self._trouble = _trouble(error)
            if isinstance(error, ApiError):
                self._reading = None  # also an unknown cursor: the next reading starts from the newest message
            return
        for message in body.get("messages") or ():
            _note(reading, message)
        reading.cursor = str((body.get("response_metadata") or {}).get("next_cursor") or "")
        reading.complete = not reading.cursor


def _trouble(error: SlackError) -> LookedUp:
    if isinstance(error, ApiError) and error.error in _UNREADABLE:
        return LookedUp(Finding.UNREADABLE, reason=error.error)
    return LookedUp(Finding.INCOMPLETE, reason=error.message)


def _note(reading: _Reading, message: Any) -> None:
    """Remember a message of ours; bodies are foreign data, so every step may find another shape."""
    carried = message.get("metadata") if isinstance(message, dict) else None
    payload = carried.get("event_payload") if isinstance(carried, dict) else None
    if not isinstance(carried, dict) or carried.get("event_type") != EVENT_TYPE or not isinstance(payload, dict):
        return
    delivery, attempt, ts = payload.get("delivery"), payload.get("attempt"), message.get("ts")
    if isinstance(delivery, str) and isinstance(ts, str) and str(attempt).isdecimal():
        copies = reading.found.setdefault((delivery, int(str(attempt))), [])
        if ts not in copies:
            copies.append(ts)


def _order(ts: str) -> tuple[int, ...]:
    """Return what orders a ts: seconds, then the fraction, as whole numbers (a float would lose digits)."""
    return tuple(int(part) if part.isdecimal() else 0 for part in ts.split("."))
