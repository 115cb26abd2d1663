"""Logging in and out: the token itself, in a cookie that scripts can't read and other sites can't send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from kizami.web.body import form_fields
from kizami.web.gate import COOKIE, asked_role

if TYPE_CHECKING:
    from kizami.web.auth import Auth
    from kizami.web.look import Look

_PAGE: Final = re.compile(r"/(?![/\\])[!-~]*", re.ASCII)
router = APIRouter()


@router.get("/login")
async def login_form(request: Request) -> Response:
    """Ask for a token."""
    look: Look = request.app.state.look
    return look.login(request.scope)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Keep a right token in the browser's cookie and go on to the page that was asked for."""
    look: Look = request.app.state.look
    auth: Auth = request.app.state.auth
    fields = form_fields(await request.body())
    token, back = fields.get("token", "").strip(), fields.get("back", "/")
    if not token or await asked_role(auth, token) is None:
        return look.login(request.scope, back=back, complaint="This token is not known here.", status=401)
    answer = _go(request, back if _PAGE.fullmatch(back) else "/")
    answer.set_cookie(
        COOKIE,
        quote(token, safe=""),
        path=_cookie_path(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Forget the token."""
    answer = _go(request, "/login")
    answer.delete_cookie(COOKIE, path=_cookie_path(request), httponly=True, samesite="strict")
    return answer


def _go(request: Request, page: str) -> RedirectResponse:
    """Send the browser to a page below the prefix; it asks for it with GET."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{page}", status_code=303)


def _cookie_path(request: Request) -> str:
    return request.scope.get("root_path") or "/"
