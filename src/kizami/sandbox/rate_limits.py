"""Counts calls in sliding windows of sandbox time. No IO, no clock: the time comes in with each call."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from kizami.sandbox.methods import Rate
from kizami.sandbox.settings import SandboxSettings

_MS_PER_SECOND = 1_000


class RateLimiter:
    """Says whether a call may pass now. A call that may not is not counted."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.enabled = settings.rate_limited
        self._history_limited = settings.history_limited
        self._rates = settings.rates
        self._windows: dict[Hashable, deque[int]] = {}
        self._paced: dict[Hashable, float] = {}
        self._closed: dict[Hashable, float] = {}

    def admit(self, app: str, method: str, rate: Rate, channel: str, now_ms: int) -> float:
        """Count the call and return 0, or return how many sandbox ms it is too early.

        The count is per app and method, as in a workspace where each app is installed once; for posting it is per app
        and channel besides.
        """
        gate = self._gate(app, method, rate, channel)
        wait = max(self._closed.get(gate, 0.0) - now_ms, 0.0)
        if self.enabled:
            wait = max(wait, self._window_wait((app, method), self._per_window(rate), now_ms))
            if rate is Rate.POSTING:
                wait = max(wait, self._pace_wait(gate, now_ms))
        if self.enabled and not wait:
            self._count((app, method), gate, now_ms, is_post=rate is Rate.POSTING)
        return wait

    def close(self, app: str, method: str, rate: Rate, channel: str, until_ms: float) -> None:
        """Let nothing pass before `until_ms`: what an injected 429 that is meant seriously does."""
        self._closed[self._gate(app, method, rate, channel)] = until_ms

    def _gate(self, app: str, method: str, rate: Rate, channel: str) -> Hashable:
        return (app, method, channel) if rate is Rate.POSTING else (app, method)

    def _per_window(self, rate: Rate) -> int:
        rates = self._rates
        if rate is Rate.HISTORY:
            return rates.history_limited_calls if self._history_limited else rates.tier_3
        counts = {
            Rate.TIER_2: rates.tier_2,
            Rate.TIER_3: rates.tier_3,
            Rate.SPECIAL: rates.special,
            Rate.POSTING: rates.posts_per_window,
        }
        return counts[rate]

    def _window_wait(self, key: Hashable, most: int, now_ms: int) -> float:
        window_ms = self._rates.window_s * _MS_PER_SECOND
        calls = self._windows.setdefault(key, deque())
        while calls and calls[0] <= now_ms - window_ms:
            calls.popleft()
        return 0.0 if len(calls) < most else calls[-most] + window_ms - now_ms

    def _pace_wait(self, gate: Hashable, now_ms: int) -> float:
        """Return the wait until the channel's bucket has room: it holds `post_burst` and leaks one a second."""
        full_ms = (self._rates.post_burst - 1) * self._interval_ms
        return max(self._paced.get(gate, 0.0) - now_ms - full_ms, 0.0)

    def _count(self, key: Hashable, gate: Hashable, now_ms: int, *, is_post: bool) -> None:
        self._windows.setdefault(key, deque()).append(now_ms)
        if is_post:
            self._paced[gate] = max(self._paced.get(gate, 0.0), float(now_ms)) + self._interval_ms

    @property
    def _interval_ms(self) -> float:
        return _MS_PER_SECOND / self._rates.posts_per_second
