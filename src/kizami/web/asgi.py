"""The web app: API, dashboard and probes behind one gate, mountable under any prefix."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from kizami.core.errors import KizamiError
from kizami.core.tokens import TOKEN_LENGTH_MIN
from kizami.web.auth import OPERATOR_VARIABLE
from kizami.web.counts import Counts
from kizami.web.current import require_known_query
from kizami.web.failures import on_bad_request, on_bug, on_http_error, on_kizami_error, on_refusal
from kizami.web.gate import API, Gate
from kizami.web.headers import SecurityHeaders
from kizami.web.look import Look
from kizami.web.openapi import describe
from kizami.web.problems import Refusal
from kizami.web.routes import jobs, mirror, pages, probes, schedules, signing_in

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from kizami.app.app import Kizami
    from kizami.web.auth import Auth

log = logging.getLogger("kizami.web")
_STATIC: Final = Path(__file__).with_name("static")


def build(app: Kizami, auth: Auth | None = None) -> ASGIApp:
    """Return the web app of `app`, which whoever serves it opens and closes.

    Without `auth` only /healthz and /readyz answer; `Auth.from_environment()` reads the usual variables.
    """
    if auth is None:
        log.warning(
            "no token is configured, so only /healthz and /readyz answer: to open the pages, set %s to a secret of %d "
            "characters or more",
            OPERATOR_VARIABLE,
            TOKEN_LENGTH_MIN,
        )
    look = Look(app.name)
    web = FastAPI(
        title="Kizami", docs_url=None, redoc_url=None, openapi_url=f"{API}/openapi.json", redirect_slashes=False
    )
    web.state.kizami, web.state.auth, web.state.look, web.state.counts = app, auth, look, Counts(app)
    _add_routes(web)
    _add_failures(web)
    describe(web)
    return SecurityHeaders(Gate(web, auth, on_refusal(look)))


def _add_routes(web: FastAPI) -> None:
    api = APIRouter(prefix=API, dependencies=[Depends(require_known_query)])
    for part in (jobs, schedules, mirror):
        api.include_router(part.router)
    web.include_router(api)
    for page in (probes, signing_in, pages):
        web.include_router(page.router, include_in_schema=False)
    web.mount("/static", StaticFiles(directory=_STATIC), name="static")


def _add_failures(web: FastAPI) -> None:
    web.add_exception_handler(KizamiError, on_kizami_error)
    web.add_exception_handler(Refusal, on_kizami_error)
    web.add_exception_handler(RequestValidationError, on_bad_request)
    web.add_exception_handler(HTTPException, on_http_error)
    web.add_exception_handler(Exception, on_bug)
