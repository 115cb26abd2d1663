"""Probes for whatever keeps the process alive: one word each, no token."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from kizami.core.errors import KizamiError
from kizami.web.current import App

router = APIRouter()


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz() -> Response:
    """Tell that the process answers."""
    return PlainTextResponse("ok")


@router.api_route("/readyz", methods=["GET", "HEAD"])
async def readyz(app: App) -> Response:
    """Tell whether the database can be read and written now, and this process's worker does its work."""
    try:
        await app.store.check()
    except KizamiError:
        return PlainTextResponse("unavailable", status_code=503)
    if app.troubles:
        return PlainTextResponse("troubled", status_code=503)
    return PlainTextResponse("ready")
