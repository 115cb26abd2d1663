"""Runs one question or change on an open app, without a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from kizami.cli.loading import load_app
from kizami.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kizami.app.app import Kizami

R = TypeVar("R")


def with_open_app(place: str, action: Callable[[Kizami], Awaitable[R]]) -> R:
    """Load the app that MODULE:APP names, open its store, and return what `action` makes of it."""
    app = load_app(place)
    require_lasting(app)

    async def opened() -> R:
        async with app.running(worker=False):
            return await action(app)

    return asyncio.run(opened())


def require_lasting(app: Kizami) -> None:
    """Raise ConfigurationError if what is stored would end with this command."""
    if not app.store.is_lasting:
        raise ConfigurationError(
            f"The database of app {app.name} is in memory: it begins and ends with this command.",
            remedy="Set KIZAMI_DATABASE_URL or Kizami(database_url=...) to the file that its worker uses.",
        )
