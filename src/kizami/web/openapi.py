"""The API's own description: what it really answers, refusals and the token included."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from kizami.web.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

_REFERENCE: Final = "#/components/schemas/{model}"
_REFUSED: Final = {
    "description": "Refused: the code, the reason and the remedy.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
}
_NOT_OURS: Final = ("HTTPValidationError", "ValidationError")


def describe(web: FastAPI) -> None:
    """Make the app describe itself accurately; the description is made once, when it is first asked for."""

    @cache
    def description() -> dict[str, Any]:
        described = get_openapi(
            title="Kizami",
            version=_version(),
            summary="Jobs on a clock, mirrored into Slack. Times are epoch milliseconds, UTC.",
            routes=web.routes,
        )
        _add_problem(described)
        return described

    web.openapi = description  # type: ignore[method-assign]  # how FastAPI lets an app describe itself


def _add_problem(described: dict[str, Any]) -> None:
    """Replace the framework's own refusals by ours, and say that a token is needed."""
    components = described["components"]
    schemas = components["schemas"]
    for name in _NOT_OURS:
        schemas.pop(name, None)
    problem = Problem.model_json_schema(ref_template=_REFERENCE)
    schemas |= problem.pop("$defs") | {"Problem": problem}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"token": []}]
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _REFUSED


def _version() -> str:
    """Return the installed version; a source tree that was never installed has none."""
    try:
        return version("kizami")
    except PackageNotFoundError:
        return "0"
