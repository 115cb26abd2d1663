"""The Slack API over ASGI: reads a request whole, and sends its answer, or cuts the connection."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kizami.sandbox.api import Silence, SlackApi
from kizami.sandbox.arguments import Request
from kizami.sandbox.connection import Connection

_BODY_MAX = 1_048_576


class ApiEndpoint:
    """An ASGI application for /api/<method>."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        http = HttpRequest(scope, receive)
        try:
            body = await _body(http)
        except ClientDisconnect:
            return
        if body is None:
            await Response("Request body too large", 413)(scope, receive, send)
            return
        name = http.url.path.rpartition("/api/")[2]
        request = Request(http.method, http.headers, http.url.query, body)
        ending = await self._api.handle(name, request)
        connection = http.scope.get("state", {}).get("connection")
        if isinstance(ending, Silence):
            await _drop(connection, receive, is_reset=ending.is_reset)
            return
        await Response(ending.body, ending.status, dict(ending.headers))(scope, receive, send)
        if not isinstance(connection, Connection) or connection.is_open:
            self._api.log.answered(ending.entry)


async def _body(http: HttpRequest) -> bytes | None:
    """Return the body, or None for one that is too large."""
    body = bytearray()
    async for chunk in http.stream():
        body += chunk
        if len(body) > _BODY_MAX:
            return None
    return bytes(body)


async def _drop(connection: Connection | None, receive: Receive, *, is_reset: bool) -> None:
    """Cut the connection and wait until the server has seen it, so that it sends no answer of its own."""
    if connection is None:
        raise ConnectionResetError("The sandbox drops this connection on purpose.")
    connection.drop(is_reset=is_reset)
    await receive()
