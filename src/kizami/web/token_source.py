"""Asking users' functions for tokens: off the event loop, with a time limit, and never too many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kizami.engine.threads import call_apart

TokenSource = Callable[[], str | Awaitable[str]]
LIMIT_MS: Final = 5_000
CALLS_MAX: Final = 32


class Constant:
    """A token that is known already: asking for it takes no time."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self) -> str:
        """Return the token."""
        return self._token


class Asking:
    """One Auth's calls of its sources; those that go on past the limit count until they end."""

    def __init__(self, limit_ms: int = LIMIT_MS, calls_max: int = CALLS_MAX) -> None:
        self._limit_ms = limit_ms
        self._calls_max = calls_max
        self._going_on: set[object] = set()

    async def ask(self, source: TokenSource) -> str:
        """Return a source's token. Raises TimeoutError, TypeError for what is no text, and what the source raises."""
        if isinstance(source, Constant):
            return source()
        if len(self._going_on) >= self._calls_max:
            raise TimeoutError(f"{len(self._going_on)} calls of the token functions have not returned yet")
        mark, stays = object(), list[object]()
        end = partial(self._going_on.discard, mark)
        self._going_on.add(mark)
        try:
            token = await call_apart(
                source,
                name="kizami-token",
                limit_ms=self._limit_ms,
                on_overstay=lambda: stays.append(mark),
                on_end=end,
            )
        finally:
            if not stays:
                end()
        if not isinstance(token, str):
            raise TypeError(f"a token function returned {type(token).__name__}, not text")
        return token
