"""The Slack API over ASGI: reads a request whole, and sends its answer, or cuts the connection."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kizami.sandbox.api import Answer, Silence, SlackApi
from kizami.sandbox.arguments import Request
from kizami.sandbox.connection import Connection

_BODY_MAX = 1_048_576


class ApiEndpoint:
    """An ASGI application for /api/<method>."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        connection: Connection | None = scope.get("state", {}).get("connection")
        try:
            ending = await self._ending(HttpRequest(scope, receive))
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            if connection is None or connection.is_open:
                raise
            await receive()  # the sandbox is closing, and cut the connection before it cancelled the call
            return
        if isinstance(ending, Silence):
            await _drop(connection, receive, is_reset=ending.is_reset)
        elif isinstance(ending, Response):
            await ending(scope, receive, send)
        else:
            await Response(ending.body, ending.status, dict(ending.headers))(scope, receive, send)
            if connection is None or connection.is_open:
                self._api.log.answered(ending.entry)

    async def _ending(self, http: HttpRequest) -> Answer | Silence | Response:
        body = bytearray()
        async for chunk in http.stream():
            body += chunk
            if len(body) > _BODY_MAX:
                return Response("Request body too large", 413)
        name = http.url.path.partition("/api/")[2]
        return await self._api.handle(name, Request(http.method, http.headers, http.url.query, bytes(body)))


async def _drop(connection: Connection | None, receive: Receive, *, is_reset: bool) -> None:
    """Cut the connection and wait until the server has seen it, so that it sends no answer of its own."""
    if connection is None:
        raise ConnectionResetError("The sandbox drops this connection on purpose.")
    connection.drop(is_reset=is_reset)
    await receive()
