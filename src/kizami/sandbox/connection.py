"""HTTP over real sockets, which an answer may never cross: connections here can be cut from the inside."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kizami.core.addresses import not_listening, require_port, unknown_host

_WHAT = "The sandbox"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Connection(H11Protocol):
    """A connection that hands itself to the application, as scope["state"]["connection"]."""

    def __init__(self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self})
        self.access_log = False

    @property
    def is_open(self) -> bool:
        """Whether the peer was still there when last heard of."""
        return not self.transport.is_closing()

    def drop(self, *, is_reset: bool) -> None:
        """Close the socket at once, or with a reset, and throw away what is not sent."""
        connected = self.transport.get_extra_info("socket")
        if is_reset and self.is_open:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()


@asynccontextmanager
async def listening(app: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve `app` and yield its address, without a slash at the end; port 0 takes a free one.

    Nothing is polled: it takes calls when it yields, and when it ends all connections are cut and all calls cancelled.
    """
    config = uvicorn.Config(app, lifespan="off", log_config=None, http="h11", ws="none", timeout_keep_alive=60)
    config.load()
    state = ServerState()
    server = await _bound(lambda: Connection(config, state, {}), host, port)
    try:
        name, bound = server.sockets[0].getsockname()[:2]
        yield f"http://[{name}]:{bound}" if ":" in name else f"http://{name}:{bound}"
    finally:
        server.close()
        for connection in tuple(state.connections):
            connection.transport.abort()
        await _cancelled(tuple(state.tasks))
        await server.wait_closed()


async def _bound(protocol: Callable[[], Connection], host: str, port: int) -> asyncio.Server:
    require_port(_WHAT, port)
    try:
        return await asyncio.get_running_loop().create_server(protocol, host, port)
    except (socket.gaierror, ValueError) as error:
        raise unknown_host(_WHAT, host) from error
    except OSError as error:
        raise not_listening(_WHAT, host, port, error.errno, os.strerror(error.errno or 0)) from error


async def _cancelled(tasks: tuple[asyncio.Task[None], ...]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
