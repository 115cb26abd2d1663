"""Reads the arguments of a call: from a JSON body, a form or the query, whose values are all strings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from kizami.sandbox.refusals import RefusedError, missing

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
_CHARSETS = frozenset({"utf-8", "utf8", "iso-8859-1"})
_ARGUMENT_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")
_WORDS_FOR_TRUE = frozenset({"1", "true"})
_WORDS_FOR_FALSE = frozenset({"0", "false", ""})


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call; JSON's null counts as left out."""

    values: Mapping[str, Any]

    def given(self, name: str) -> bool:
        """Return whether the caller gave the argument."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str | None:
        """Return a string, or None when left out; numbers are taken as written."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise RefusedError("invalid_arguments", [f"must provide a string [json-pointer:/{name}]"])

    def required(self, name: str) -> str:
        """Return a string that must be there."""
        value = self.text(name)
        if not value:
            raise missing(name)
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, False when left out."""
        word = str(self.values.get(name) or "").lower()
        if word in _WORDS_FOR_TRUE | _WORDS_FOR_FALSE:
            return word in _WORDS_FOR_TRUE
        raise RefusedError("invalid_arguments", [f"must provide a boolean [json-pointer:/{name}]"])

    def number(self, name: str, default: int, error: str) -> int:
        """Return a whole number; raises `error` for anything else."""
        text = self.text(name)
        if text is None or text == "":
            return default
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
            raise RefusedError(error)
        return int(text)

    def structure(self, name: str, error: str) -> Any:
        """Return a JSON value, which in a form or query is a string of JSON; raises `error` if that can't be read."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value, parse_constant=_refuse_constant) if value else None
        except (ValueError, RecursionError) as unreadable:
            raise RefusedError(error) from unreadable


@dataclass(frozen=True, slots=True)
class Request:
    """A call as it came over the wire; header names are lower case."""

    verb: str
    headers: Mapping[str, str]
    query: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a request says."""

    arguments: Arguments
    token: str | None
    warnings: tuple[str, ...]


def decode(request: Request, *, takes_json: bool) -> Decoded:
    """Read a request.

    The token is taken from the Authorization header or a form field. One in the address is not looked at, as with
    Slack's newer apps. Raises RefusedError if the body can't be read.
    """
    kind, charset = _content_type(request.headers.get("content-type", ""))
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    query.pop("token", None)
    body, warnings = _body(request.body, kind, charset, takes_json=takes_json)
    token = body.pop("token", None) if kind == FORM_TYPE else None
    values = query | body
    if not all(_ARGUMENT_NAME.fullmatch(name) for name in values):
        raise RefusedError("invalid_arg_name")
    return Decoded(Arguments(values), _bearer(request.headers) or token or None, warnings)


def _body(body: bytes, kind: str, charset: str, *, takes_json: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    if not body:
        return {}, ()
    if charset and charset not in _CHARSETS:
        raise RefusedError("invalid_charset")
    if kind == FORM_TYPE:
        return _form(body), ("superfluous_charset",) if charset else ()
    if kind == JSON_TYPE:
        values = _json_object(body)
        return values if takes_json else {}, () if charset else ("missing_charset",)
    raise RefusedError("invalid_post_type" if kind else "missing_post_type")


def _form(body: bytes) -> dict[str, Any]:
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, errors="strict"))
    except ValueError as unreadable:
        raise RefusedError("invalid_form_data") from unreadable


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as unreadable:
        raise RefusedError("invalid_json") from unreadable
    if not isinstance(values, dict):
        raise RefusedError("json_not_object")
    return values


def _content_type(header: str) -> tuple[str, str]:
    kind, _, rest = header.partition(";")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", rest, re.IGNORECASE)
    return kind.strip().lower(), charset[1].lower() if charset else ""


def _bearer(headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
