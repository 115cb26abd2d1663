"""Who may control a sandbox, and what a browser may do with its pages."""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_READING = frozenset({"GET", "HEAD"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class SecurityHeaders:
    """Adds the headers that keep a page from running or loading anything that is not the sandbox's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the answer back with the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class ControlGuard:
    """Lets a request through to the controls: with the control token, or without one only from this machine.

    Without a token, the Host must be a name of this machine as well, so that no web site can reach in under its own;
    and with or without, a change must be JSON and must not come from another site's page.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if self._token is not None:
            sent = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(sent.encode(), self._token.encode()):
                return _refused(401, "The control token is missing or wrong.")
        elif not (_is_here(scope) and _is_local_name(headers.get("host", ""))):
            return _refused(403, "Without a control token, a sandbox is controlled from its own machine only.")
        if scope["method"] not in _READING:
            return _refused_change(headers)
        return None


def _refused_change(headers: Headers) -> JSONResponse | None:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return _refused(403, "Another site's page may not control a sandbox.")
    if not headers.get("content-type", "").startswith("application/json"):
        return _refused(415, "Send a change as application/json.")
    return None


def _refused(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": "not_allowed", "message": message}, status)


def _is_here(scope: Scope) -> bool:
    client = scope.get("client")
    return client is not None and _is_loopback(client[0])


def _is_local_name(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    return name == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
