"""What went wrong, as JSON for programs: one table from error codes to HTTP statuses, one shape for all answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse

from kizami.core.errors import KizamiError, LeaseHeldError

log = logging.getLogger("kizami.web")

MEDIA_TYPE: Final = "application/problem+json"
_SERVER_ERROR: Final = 500
_MESSAGE_MAX: Final = 2_000

STATUSES: Final[Mapping[str, int]] = MappingProxyType(
    {
        # Kizami's own errors
        "kizami_error": 500,
        "invalid_definition": 400,
        "invalid_cron": 400,
        "invalid_time_zone": 400,
        "invalid_input": 400,
        "invalid_payload": 400,
        "not_planned": 400,
        "other_database": 400,
        "fire_refused": 409,
        "not_found": 404,
        "wrong_state": 409,
        "cursor_moved": 409,
        "gone": 410,
        "sync_in_progress": 409,
        "configuration": 501,
        "store_unavailable": 503,
        "store_busy": 503,
        "store_full": 503,
        "store_read_only": 503,
        "store_slow": 503,
        "store_unclear": 503,
        "store_version": 503,
        # Slack and users' tables, for a route that asks them: whatever they answered, this service can't serve it now
        "board_not_shown": 503,
        "user_table": 503,
        "slack": 503,
        "slack_rate_limited": 503,
        "slack_refused": 503,
        "slack_server_error": 503,
        "slack_unclear": 503,
        "slack_unreachable": 503,
        # the web's own refusals
        "invalid_json": 400,
        "unauthorized": 401,
        "forbidden": 403,
        "cross_site": 403,
        "stale_form": 403,
        "method_not_allowed": 405,
        "too_large": 413,
        "unsupported_media_type": 415,
        "internal": 500,
    }
)


class Holder(BaseModel):
    """Who holds a lease."""

    holder: str | None
    started_at: int | None
    heartbeat_at: int | None


class FieldProblem(BaseModel):
    """One refused field."""

    path: str
    message: str


class Problem(BaseModel):
    """Why a request was refused, and the next step."""

    model_config = ConfigDict(frozen=True)

    status: int
    code: str
    message: str
    remedy: str | None = None
    path: str | None = None
    errors: tuple[FieldProblem, ...] = ()
    error: str | None = None
    holder: Holder | None = None


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """A request is refused with this problem."""

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str | None = None,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = Problem(status=STATUSES[code], code=code, message=message, remedy=remedy, path=path)
        self.headers = dict(headers or {})


def problem_of(error: KizamiError) -> Problem:
    """Return how an error looks from outside; one that is the server's is logged too."""
    status = STATUSES.get(error.code, _SERVER_ERROR)
    if status >= _SERVER_ERROR:
        log.error("answered %d: %s", status, error)
    path = error.facts.get("path")
    held = isinstance(error, LeaseHeldError)
    return Problem(
        status=status,
        code=error.code,
        message=error.message[:_MESSAGE_MAX],
        remedy=error.remedy,
        path=path if isinstance(path, str) else None,
        error=error.code if held else None,
        holder=_holder(error.facts) if held else None,
    )


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the problem as an HTTP answer; what is not known is left out."""
    content = problem.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return JSONResponse(content, status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)


def _holder(facts: Mapping[str, Any]) -> Holder:
    return Holder.model_construct(**{name: facts.get(name) for name in Holder.model_fields})
