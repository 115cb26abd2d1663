"""The one door in front of every route: nothing behind it is reached without the right identity.

It stands before the router, so a route that is added later is closed until someone opens it here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from kizami.web.auth import Auth, Identity, Role, csrf_token_for, same_secret
from kizami.web.body import FORM_TYPE, JSON_TYPE, form_fields, read_body, replay, require_strict_json, require_type
from kizami.web.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    Refuse = Callable[[Scope, Refusal], Awaitable[Response]]

log = logging.getLogger("kizami.web")
COOKIE: Final = "kizami_token"
CSRF_FIELD: Final = "csrf_token"
CSRF_HEADER: Final = "x-csrf-token"
API: Final = "/api"
_IDENTITY: Final = "kizami.identity"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PROBES: Final = frozenset({"/healthz", "/readyz"})
_OPEN: Final = _PROBES | {"/login", "/api/openapi.json"}
_STATIC: Final = "/static/"
_FOR_EVERY_ROLE: Final = frozenset({"/logout"})


class Gate:
    """ASGI middleware that authenticates, authorises and checks bodies. `refuse` renders a refusal."""

    def __init__(self, inner: ASGIApp, auth: Auth | None, refuse: Refuse) -> None:
        self._inner = inner
        self._auth = auth
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        if scope["type"] != "http":
            await self._turn_away(scope, receive, send)
            return
        try:
            admitted = await self._admit(scope, receive)
        except Refusal as refusal:
            answer = await self._refuse(scope, refusal)
            await answer(scope, receive, send)
            return
        await self._inner(scope, admitted, send)

    async def _turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the server's own start and stop through; there are no websockets here."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """Return what the routes may read from; raise Refusal."""
        path, headers = path_of(scope), Headers(scope=scope)
        safe = scope["method"] in _SAFE
        if self._auth is None:
            _require_probe(path, scope["method"])
            return receive
        identity = None if path in _PROBES else await _identify(self._auth, headers)
        scope[_IDENTITY] = identity
        if safe:
            _require_identity(identity, path)
            return receive
        return await _admit_write(identity, path, headers, receive)


def path_of(scope: Scope) -> str:
    """Return the path below the prefix under which the app is mounted."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        path = path[len(prefix) :]
    return path or "/"


def identity_of(scope: Scope) -> Identity | None:
    """Return who was admitted; None on the pages that are open to all."""
    identity: Identity | None = scope.get(_IDENTITY)
    return identity


def is_served(scope: Scope) -> bool:
    """Tell whether the asker could be looked up, found or not; until then no page shows that it is there."""
    return _IDENTITY in scope


def is_api(scope: Scope) -> bool:
    """Tell whether programs ask, and not a person's browser."""
    path = path_of(scope)
    return path == API or path.startswith(f"{API}/")


async def _admit_write(identity: Identity | None, path: str, headers: Headers, receive: Receive) -> Receive:
    """Check a request that may change something, from the cheapest test to the dearest."""
    if path not in _OPEN:
        _require_role(identity, path)
    from_browser = identity is None or identity.csrf_token is not None
    if from_browser:
        _require_same_origin(headers)
    body = await read_body(headers, receive)
    if path.startswith(f"{API}/"):
        require_type(headers, body, JSON_TYPE)
        require_strict_json(body)
        given = headers.get(CSRF_HEADER, "")
    else:
        require_type(headers, body, FORM_TYPE)
        given = form_fields(body).get(CSRF_FIELD, "")
    if path not in _OPEN:
        _require_csrf_token(identity, given)
    return replay(body, receive)


def _require_probe(path: str, method: str) -> None:
    """Without auth, everything but the probes is as if it didn't exist."""
    if path not in _PROBES or method not in _SAFE:
        raise Refusal("not_found", "Not found.")


async def _identify(auth: Auth, headers: Headers) -> Identity | None:
    """Return who the request comes from; a bearer token that is given must be right, whatever the cookie says."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        role = await asked_role(auth, token.strip()) if scheme.lower() == "bearer" else None
        return None if role is None else Identity(role)
    token = unquote(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))
    role = await asked_role(auth, token) if token else None
    return None if role is None else Identity(role, csrf_token_for(token))


async def asked_role(auth: Auth, token: str) -> Role | None:
    """Ask for the role; where the tokens can't be had (a vault that is away), nobody gets in. Raises Refusal."""
    try:
        return await auth.role_of(token)
    except TimeoutError as error:
        log.error("the tokens can't be read in time: %s", str(error) or "a token function took too long")  # noqa: TRY400 - the limit's own trace tells nothing
        raise Refusal(
            "tokens_slow", "The token can't be checked now.", "Try again; the server's log says why."
        ) from error
    except Exception as error:
        log.exception("the tokens can't be read")
        raise Refusal("internal", "The token can't be checked.", "The server's log says why.") from error


def _require_identity(identity: Identity | None, path: str) -> Identity:
    if identity is None and not (path in _OPEN or path.startswith(_STATIC)):
        raise Refusal(
            "unauthorized",
            "This needs a token.",
            "Send Authorization: Bearer and the token, or log in.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return identity or Identity(Role.VIEWER)


def _require_role(identity: Identity | None, path: str) -> None:
    if not _require_identity(identity, path).may_act and path not in _FOR_EVERY_ROLE:
        raise Refusal("forbidden", "A viewer may look but not act.", "Use the operator's token.")


def _require_same_origin(headers: Headers) -> None:
    """Believe the browser: Sec-Fetch-Site where it sends it, else Origin against Host. Silence is a no."""
    site = headers.get("sec-fetch-site")
    if site is None:
        same = bool(headers.get("host")) and _host(headers.get("origin", "")) == headers.get("host", "").lower()
    else:
        same = site == "same-origin"
    if not same:
        raise Refusal("cross_site", "The request comes from another site.", "Open the dashboard itself and act there.")


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _require_csrf_token(identity: Identity | None, given: str) -> None:
    expected = identity.csrf_token if identity else None
    if expected is not None and not same_secret(expected, given):
        raise Refusal("stale_form", "The page is older than your login.", "Reload the page and try again.")
