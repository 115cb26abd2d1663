"""Who may control a sandbox, and what a browser may do with its pages."""

from __future__ import annotations

import base64
import hmac
from typing import Final
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kizami.core.addresses import is_loopback
from kizami.core.errors import ConfigurationError
from kizami.sandbox.settings import BotSeed, SandboxSettings

VARIABLE: Final = "KIZAMI_SANDBOX_TOKEN"
_SHOWN_MAX: Final = 100
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


class PageGuard:
    """Lets a browser through to the pages: anybody where there is no token, else who has it.

    A browser asks for the token as the password of its own login form; any user name will do.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        if scope["type"] == "http" and self._token is not None and not _has_token(Headers(scope=scope), self._token):
            asks = {"www-authenticate": 'Basic realm="Kizami sandbox", charset="UTF-8"'}
            await PlainTextResponse("The sandbox's token is missing or wrong.", 401, asks)(scope, receive, send)
            return
        await self._app(scope, receive, send)


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
            if not _has_token(headers, self._token):
                return _refused(
                    401, "The control token is missing or wrong.", "Send Authorization: Bearer and the token."
                )
        elif not (_is_here(scope) and _is_local_name(headers.get("host", ""))):
            return _refused(
                403,
                "Without a control token, a sandbox is controlled from its own machine only.",
                "Ask 127.0.0.1 or localhost on its machine, or give it a control token.",
            )
        if scope["method"] not in _READING:
            return _refused_change(headers)
        return None


def require_private(host: str, settings: SandboxSettings) -> None:
    """Raise ConfigurationError for an address that others can reach, unless only who has a secret is answered there."""
    known = any(bot.token == BotSeed().token for bot in settings.bots)
    if is_loopback(host) or (settings.control_token is not None and not known):
        return
    missing = "its bot has the token that everybody knows" if settings.control_token else "it has no token"
    raise ConfigurationError(
        f"The sandbox doesn't listen on {host[:_SHOWN_MAX]!r}, where others can reach it: {missing}.",
        remedy=f"Listen on 127.0.0.1, or set {VARIABLE} to a secret (in code: control_token, and the bots' tokens).",
    )


def _has_token(headers: Headers, token: str) -> bool:
    """Tell whether the token was sent, as Bearer or as the password of Basic."""
    scheme, _, sent = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            sent = base64.b64decode(sent, validate=True).decode("utf-8", "replace").partition(":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(sent.strip().encode(), token.encode())


def _refused_change(headers: Headers) -> JSONResponse | None:
    origin = headers.get("origin")
    if origin is not None and _parts(origin).netloc != headers.get("host"):
        return _refused(403, "Another site's page may not control a sandbox.", "Use its own pages, or a program.")
    if not headers.get("content-type", "").startswith("application/json"):
        return _refused(415, "A change must be JSON.", "Send it as Content-Type: application/json.")
    return None


def _refused(status: int, message: str, remedy: str) -> JSONResponse:
    return JSONResponse({"error": "not_allowed", "message": f"{message} {remedy}"}, status)


def _is_here(scope: Scope) -> bool:
    client = scope.get("client")
    return client is not None and is_loopback(client[0])


def _is_local_name(host: str) -> bool:
    return is_loopback(_parts(f"//{host}").hostname or "")


def _parts(address: str) -> SplitResult:
    """Split an address; what is none has no parts."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")
