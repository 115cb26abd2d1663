"""A clock that tests move, and what a refused call says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError

from kizami.runtime import Clock

STATUS, ALERTS = "C0STATUS", "C0ALERTS"
TOKEN = "xoxb-sandbox"  # noqa: S105 - a stand-in's token opens nothing


class HandClock(Clock):
    """Stands still until it is moved; tells when somebody waits on it."""

    def __init__(self) -> None:
        self.wall_ms = 1_796_000_000_123
        self._boot_ms = 77_000
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._waited_on = asyncio.Event()

    def now_ms(self) -> int:
        return self.wall_ms

    def boot_ms(self) -> int:
        return self._boot_ms

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._boot_ms + seconds * 1_000, waking))
        self._waited_on.set()
        await waking

    def move(self, seconds: float) -> None:
        """Let time pass, and wake whose time has come."""
        self._boot_ms += round(seconds * 1_000)
        self.wall_ms += round(seconds * 1_000)
        for due, waking in self._sleepers:
            if due <= self._boot_ms and not waking.done():
                waking.set_result(None)
        self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper[1].done()]

    async def until_waited_on(self) -> None:
        """Return once somebody sleeps."""
        await self._waited_on.wait()
        self._waited_on.clear()


async def refusal(call: Awaitable[object]) -> dict[str, Any]:
    """Return the body of the refusal that a call must end in."""
    with pytest.raises(SlackApiError) as refused:
        await call
    body = refused.value.response.data
    assert isinstance(body, dict)
    return body


async def error_of(call: Awaitable[object]) -> str:
    """Return Slack's error of the refusal that a call must end in."""
    return str((await refusal(call))["error"])
