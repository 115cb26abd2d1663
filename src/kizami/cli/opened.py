"""Runs one question or change on an open app, without a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from kizami.cli.loading import load_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kizami.app.app import Kizami

R = TypeVar("R")


def with_open_app(place: str, action: Callable[[Kizami], Awaitable[R]]) -> R:
    """Load the app that MODULE:APP names, open its store, and return what `action` makes of it."""
    app = load_app(place)

    async def opened() -> R:
        async with app.running(worker=False):
            return await action(app)

    return asyncio.run(opened())
