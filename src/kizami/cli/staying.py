"""Staying until a signal: an app's worker and, unless it is not wanted, its pages in one process."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kizami.cli.extras import needs_extra
from kizami.cli.stopping import stop_signals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from kizami.app.app import Kizami

log = logging.getLogger("kizami.cli")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where the pages are served."""

    host: str
    port: int


async def stay(app: Kizami, web: WebAddress | None, begun: Callable[[], Awaitable[None]] | None = None) -> None:
    """Run an app's worker, and its pages unless `web` is None, until a signal says stop.

    `begun` is awaited when the worker runs. The address is taken before the worker starts: a port in use fails before
    anything fires. Raises ConfigurationError and StoreError.
    """
    with stop_signals() as stop:
        async with _pages(app, web), app.running():
            if not app.store.is_lasting:
                log.warning("the database is in memory: jobs and schedules are forgotten when this process ends")
            log.info("app %s is running", app.name)
            if begun is not None:
                await begun()
            await stop.wait()
    log.info("app %s has stopped", app.name)


@asynccontextmanager
async def _pages(app: Kizami, web: WebAddress | None) -> AsyncIterator[None]:
    if web is None:
        yield
        return
    with needs_extra("The web server (leave it out with --no-web)", "web"):
        from kizami.web.auth import Auth  # noqa: PLC0415 - needs the extra
        from kizami.web.server import serving  # noqa: PLC0415 - as above
    auth = Auth.from_environment()
    async with serving(app, auth, web.host, web.port) as url:
        log.info("the pages are at %s", url)
        yield
