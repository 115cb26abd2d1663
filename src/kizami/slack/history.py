"""Looking for messages that may have been posted: by their delivery id, in the channel's history.

Absence is concluded only from a reading of the whole window since the attempt that met no error. The window is in
Slack's time, since that makes the ts; an attempt of which Slack's time isn't known is looked for in the whole channel.
A reading that was cut short (by its budget, by Slack's limit of one call a minute) goes on from its last page at the
next deliver.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kizami.slack.errors import ApiError, SlackError
from kizami.slack.message import EVENT_TYPE
from kizami.slack.policy import LOOK_UP
from kizami.slack.posting import Posted
from kizami.slack.slack_time import ts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.times import EpochMs
    from kizami.engine.context import JobContext
    from kizami.slack.client import Slack
    from kizami.slack.identity import Identity
    from kizami.store.protocol import Intent

log = logging.getLogger("kizami.slack.history")

HISTORY: Final = "conversations.history"
MARGIN_MS: Final = 300_000
"""How far apart the clocks of Slack's own machines may be: one shows us the time, another makes the ts."""

_DATE_MS: Final = 1_000
"""How finely an answer shows the time."""

_PAGE: Final = 200
_UNREADABLE: Final = frozenset(
    {
        "missing_scope",
        "not_in_channel",
        "channel_not_found",
        "channel_is_limited_access",
        "restricted_action",
        "no_permission",
        "not_allowed_token_type",
        "access_denied",
        "method_not_supported_for_channel_type",
    },
)

Key = tuple[str, int]
"""A delivery id and an attempt, or the lineage of a row of a shared table and LINEAGE."""
LINEAGE: Final = -1


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Attempts to look for, and between which of Slack's times they were made; None is not known."""

    keys: frozenset[Key]
    first_at: EpochMs
    last_at: EpochMs | None

    @classmethod
    def of(cls, delivery: str, intents: Sequence[Intent], lineage: str | None) -> _Wanted:
        keys = frozenset((delivery, intent.attempt) for intent in intents)
        if lineage is not None:
            keys |= {(lineage, LINEAGE)}
        times = [intent.slack_at for intent in intents if intent.slack_at is not None]
        if len(times) < len(intents):
            return cls(keys, 0, None)
        return cls(keys, min(times), max(times))


@dataclass(slots=True)
class _Reading:
    """One pass over a channel's history, newest first, back to `since` (Slack's time; 0 is the channel's beginning).

    It tells about attempts made until `until`, and about those `waited_for`: both had their time to appear before it
    began.
    """

    since: EpochMs
    until: EpochMs | None
    waited_for: frozenset[Key]
    cursor: str = ""
    complete: bool = False
    found: dict[Key, list[str]] = field(default_factory=dict)

    def would_tell_of(self, wanted: _Wanted) -> bool:
        """Tell whether the attempts would be in it, once it is complete."""
        if self.since > wanted.first_at:
            return False
        timely = wanted.last_at is not None and self.until is not None and wanted.last_at <= self.until
        return timely or wanted.keys <= self.waited_for


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
        self._doubted_at: dict[Key, int] = {}
        """Since when, on the boot clock, an attempt is known to be in doubt, with its call over."""
        self._one_at_a_time = asyncio.Lock()

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
        self,
        job: JobContext,
        delivery: str,
        intents: Sequence[Intent],
        since: EpochMs | None = None,
        lineage: str | None = None,
    ) -> LookedUp:
        """Look for the message of one of these attempts; `since` (Slack's time) lets one reading serve older ones too.

        ABSENT is the answer only when a complete reading would have shown it.
        """
        async with self._one_at_a_time:
            wanted = _Wanted.of(delivery, intents, lineage)
            since = min(wanted.first_at, wanted.first_at if since is None else since)
            left_ms = self._left_ms(job, wanted)
            fits = left_ms <= job.job.options.timeout_ms // 2
            found = self._known(wanted)
            if found is None and not self._tells_of(wanted) and (fits or not self._reaches(wanted)):
                # A call may be accepted at its very end, so its length counts too.
                until = self._slack_time(-self._slack.timeout_ms - self._lag_ms - _DATE_MS)
                await self._read(wanted, since, until, frozenset())
                found = self._known(wanted)
            if found is None and self._trouble is None and not self._tells_of(wanted):
                if not fits:
                    return LookedUp(Finding.INCOMPLETE, reason=f"it may take {left_ms // 1000} s more to appear")
                # What Slack has accepted may take a moment to appear: look once more after that moment.
                until = self._slack_time(_DATE_MS)
                job.heartbeat()
                await job.runtime.clock.sleep(left_ms / 1000)
                await self._read(wanted, since, until, wanted.keys)
                found = self._known(wanted)
            answer = found or self._trouble or self._concluded(wanted)
            if answer.finding is not Finding.INCOMPLETE:
                for key in wanted.keys:
                    self._doubted_at.pop(key, None)
            return answer

    def _left_ms(self, job: JobContext, wanted: _Wanted) -> int:
        """Return how much of the lag is left for these attempts, counted from when they were first looked for here.

        A later try finds less left, or nothing: also a lag that is longer than any try may last comes to its end. Of a
        shared row others may have made attempts since, which have all of it before them.
        """
        now = job.runtime.clock.boot_ms()
        begun = [self._doubted_at.setdefault(key, now) for key in wanted.keys if key[1] != LINEAGE]
        if len(begun) < len(wanted.keys):
            return self._lag_ms
        return max(0, self._lag_ms - (now - max(begun, default=now)))

    def _reaches(self, wanted: _Wanted) -> bool:
        """Tell whether the attempts' time was read already: reading it again teaches nothing before the lag is over."""
        reading = self._reading
        return reading is not None and reading.complete and reading.since <= wanted.first_at

    def _concluded(self, wanted: _Wanted) -> LookedUp:
        if self._tells_of(wanted):
            return LookedUp(Finding.ABSENT)
        return LookedUp(Finding.INCOMPLETE, reason="what was read can't be shown to reach back to the attempt")

    def _slack_time(self, shift_ms: int) -> EpochMs | None:
        now = self._slack.now()
        return None if now is None else now + shift_ms

    def _known(self, wanted: _Wanted) -> LookedUp | None:
        found = self._reading.found if self._reading else {}
        copies = sorted({ts for key in wanted.keys for ts in found.get(key, ())}, key=_order)
        return LookedUp(Finding.FOUND, Posted(self._channel, copies[0]), len(copies)) if copies else None

    def _tells_of(self, wanted: _Wanted) -> bool:
        return self._reading is not None and self._reading.complete and self._reading.would_tell_of(wanted)

    async def _read(self, wanted: _Wanted, since: EpochMs, until: EpochMs | None, waited_for: frozenset[Key]) -> None:
        """Read to the end, going on with an unfinished reading where that is enough."""
        reading = self._reading
        if reading is None or reading.complete or not reading.would_tell_of(wanted):
            reading = self._reading = _Reading(since, until, waited_for)
        try:
            us = await self._slack.introduce()
            while self._trouble is None and not reading.complete:
                if self._calls_left <= 0:
                    self._trouble = LookedUp(Finding.INCOMPLETE, reason="the look-ups of this deliver are used up")
                    return
                self._calls_left -= 1
                await self._read_page(reading, us)
        except SlackError as error:
            self._trouble = _trouble(error)
            if isinstance(error, ApiError):
                self._reading = None  # also an unknown cursor: the next reading starts from the newest message

    async def _read_page(self, reading: _Reading, us: Identity) -> None:
        oldest = ts_of(reading.since - MARGIN_MS) if reading.since > MARGIN_MS else "0"
        page = {"cursor": reading.cursor} if reading.cursor else {}
        arguments = {"channel": self._channel, "include_all_metadata": True, "oldest": oldest, "limit": _PAGE, **page}
        body = await self._slack.call(HISTORY, arguments, LOOK_UP)
        messages, metadata = body.get("messages"), body.get("response_metadata")
        if not isinstance(messages, list):
            self._trouble = LookedUp(Finding.INCOMPLETE, reason="Slack's answer holds no messages")
            return
        for message in messages:
            self._note(reading, message, us)
        reading.cursor = str((metadata.get("next_cursor") if isinstance(metadata, dict) else None) or "")
        if not reading.cursor and body.get("has_more"):
            self._reading = None
            self._trouble = LookedUp(Finding.INCOMPLETE, reason="Slack says that there is more, and not where")
            return
        reading.complete = not reading.cursor

    def _note(self, reading: _Reading, message: Any, us: Identity) -> None:
        """Remember a message of ours; bodies are foreign data, so every step may find another shape."""
        carried = message.get("metadata") if isinstance(message, dict) else None
        payload = carried.get("event_payload") if isinstance(carried, dict) else None
        if not isinstance(carried, dict) or carried.get("event_type") != EVENT_TYPE or not isinstance(payload, dict):
            return
        delivery, attempt, ts = payload.get("delivery"), payload.get("attempt"), message.get("ts")
        if not (isinstance(delivery, str) and isinstance(ts, str) and _is_number(attempt)):
            return
        if not us.wrote(message):
            log.warning("%s: message %s carries the mark of %s, but isn't ours", self._channel, ts, delivery)
            return
        keys, lineage = [(delivery, int(str(attempt)))], payload.get("lineage")
        if isinstance(lineage, str):
            keys.append((lineage, LINEAGE))
        for key in keys:
            copies = reading.found.setdefault(key, [])
            if ts not in copies:
                copies.append(ts)


def _trouble(error: SlackError) -> LookedUp:
    if isinstance(error, ApiError) and error.method == HISTORY and error.error in _UNREADABLE:
        return LookedUp(Finding.UNREADABLE, reason=error.error)
    return LookedUp(Finding.INCOMPLETE, reason=error.message)


def _is_number(attempt: object) -> bool:
    text = str(attempt)
    return text.isascii() and text.isdecimal() and len(text) < 10  # noqa: PLR2004 - nobody tries a thousand million times


def _order(ts: str) -> tuple[int, ...]:
    """Return what orders a ts: seconds, then the fraction, as whole numbers (a float would lose digits)."""
    return tuple(int(part) if part.isdecimal() else 0 for part in ts.split("."))
