"""Serving inside this process: uvicorn on the running loop, signals left to whoever owns them."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn

from kizami.core.addresses import not_listening, require_port, unknown_host
from kizami.core.errors import ConfigurationError
from kizami.web.asgi import build

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kizami.app.app import Kizami
    from kizami.runtime import Clock
    from kizami.web.auth import Auth

_STOP_SECONDS = 5
_WHAT = "The dashboard"


@asynccontextmanager
async def serving(app: Kizami, auth: Auth | None = None, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve an open app while the body runs; yields its URL, ready to be asked. Port 0 takes a free one.

    Raises ConfigurationError when the address can't be had.
    """
    listener = _listen(host, port)
    server = uvicorn.Server(_settings(app, auth))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    ticking = asyncio.create_task(_tick(server, app.runtime.clock), name="kizami-web")
    try:
        yield f"http://{_shown(host)}:{listener.getsockname()[1]}"
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        await server.shutdown(sockets=[listener])


async def _tick(server: uvicorn.Server, clock: Clock) -> None:
    """Keep the server's Date header. Its own loop wakes ten times a second to see whether it is to end."""
    while True:
        await server.on_tick(0)
        await clock.sleep(1)


def _settings(app: Kizami, auth: Auth | None) -> uvicorn.Config:
    return uvicorn.Config(
        build(app, auth),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def _listen(host: str, port: int) -> socket.socket:
    require_port(_WHAT, port)
    try:
        # Python's IDNA codec raises a UnicodeError for names that it refuses, its C code a ValueError for a NUL.
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, ValueError) as error:
        raise unknown_host(_WHAT, host) from error
    try:
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _refusal(host, port, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _refusal(host, port, error) from error
    return listener


def _refusal(host: str, port: int, error: OSError) -> ConfigurationError:
    return not_listening(_WHAT, host, port, error.errno, error.strerror or str(error))


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
