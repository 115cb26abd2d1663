"""How what went wrong reaches its reader: a problem in JSON for programs, a page for people."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from fastapi.exceptions import RequestValidationError
from pydantic.alias_generators import to_snake
from starlette.exceptions import HTTPException

from kizami.core.errors import KizamiError
from kizami.web.gate import is_api, is_served, path_of
from kizami.web.problems import STATUSES, FieldProblem, Problem, Refusal, answer, problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from kizami.web.look import Look

_HTTP_ERRORS: Final = {404: ("not_found", "There is nothing here."), 405: ("method_not_allowed", "This can't be done.")}
_BUG: Final = Problem(
    status=STATUSES["internal"],
    code="internal",
    message="Kizami failed to answer.",
    remedy="The server's log says why.",
)


def on_refusal(look: Look) -> Callable[[Scope, Refusal], Awaitable[Response]]:
    """Return what the gate answers with; who has no token and opens a page meets the login form."""

    async def refuse(scope: Scope, refusal: Refusal) -> Response:
        if is_api(scope) or not is_served(scope):
            return answer(refusal.problem, refusal.headers)
        if refusal.problem.code == "unauthorized":
            return look.login(scope, back=_back(scope), status=refusal.problem.status, headers=refusal.headers)
        return look.problem(scope, refusal.problem, refusal.headers)

    return refuse


async def on_kizami_error(request: Request, error: Exception) -> Response:
    """Answer with a typed error's own status."""
    if isinstance(error, Refusal):
        return _respond(request, error.problem, error.headers)
    assert isinstance(error, KizamiError)  # noqa: S101 - registered for these two
    return _respond(request, problem_of(error))


async def on_bad_request(request: Request, error: Exception) -> Response:
    """Answer 400 with the path and reason of every refused field."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this one
    fields = tuple(FieldProblem(path=_place(one["loc"], error.body), message=one["msg"]) for one in error.errors())
    first = fields[0]
    problem = Problem(
        status=STATUSES["invalid_input"],
        code="invalid_input",
        message=f"{first.path}: {first.message}.",
        remedy="Send what /api/openapi.json describes.",
        path=first.path,
        errors=fields,
    )
    return _respond(request, problem)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer the router's own refusals in the shape of all others."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this one
    other = ("invalid_input", HTTPStatus(error.status_code).phrase)
    code, message = _HTTP_ERRORS.get(error.status_code, other)
    problem = Problem(status=error.status_code, code=code, message=message, remedy=_way_on(request, error))
    return _respond(request, problem, error.headers)


async def on_bug(request: Request, _: Exception) -> Response:
    """Answer without detail; the server logs the exception."""
    return _respond(request, _BUG)


def _way_on(request: Request, error: HTTPException) -> str:
    """Return what can be asked for instead."""
    allowed = (error.headers or {}).get("allow") or (error.headers or {}).get("Allow")
    if allowed:
        return f"Use {allowed.replace(', ', ' or ')}."
    return "See /api/openapi.json for what there is." if is_api(request.scope) else "Start from the overview."


def _respond(request: Request, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    if is_api(request.scope):
        return answer(problem, headers)
    look: Look = request.app.state.look
    return look.problem(request.scope, problem, headers)


def _place(location: tuple[int | str, ...], body: object) -> str:
    """Return a place under the request's own name, without the part of the request that it is in."""
    part, *inner = location
    if part == "query":
        return str(inner[0]) if inner else str(part)
    path = ""
    for step in inner:
        path += f"[{step}]" if isinstance(step, int) else f".{_as_asked(step, body)}"
    return path.removeprefix(".") or str(part)


def _as_asked(name: str, body: object) -> str:
    """Return a body's field as the request spells it: snake_case unless it wrote camelCase."""
    return name if isinstance(body, dict) and name in body else to_snake(name)


def _back(scope: Scope) -> str:
    """Return where to go after the login: the page that was asked for, or the first one after a write."""
    if scope["method"] != "GET":
        return "/"
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path_of(scope)}?{query}" if query else path_of(scope)
