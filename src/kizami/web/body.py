"""Request bodies: bounded, and JSON in the strict sense only."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from kizami.web.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.datastructures import Headers
    from starlette.types import Message, Receive

BODY_BYTES_MAX: Final = 1_048_576
JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
_FORM_FIELDS_MAX: Final = 100
_FINITE: Final = "Send a finite number, or leave it out."


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """Read the whole body. Refuses one that is, or says that it is, larger than BODY_BYTES_MAX (413)."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(BODY_BYTES_MAX)) or int(declared) > BODY_BYTES_MAX):
        raise _too_large()
    chunks = bytearray()
    more = True
    while more:
        message = await receive()
        chunks += message.get("body", b"")
        more = message.get("more_body", False)
        if len(chunks) > BODY_BYTES_MAX:
            raise _too_large()
    return bytes(chunks)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once more, and then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def require_type(headers: Headers, body: bytes, expected: str) -> None:
    """Refuse a body that is not declared as `expected` (415); no body needs no type."""
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given == expected or not (given or body):
        return
    raise Refusal(
        "unsupported_media_type",
        f"The body is {given or 'of no declared type'}.",
        f"Send it as Content-Type: {expected}.",
    )


def require_strict_json(body: bytes) -> None:
    """Refuse what is not JSON, also where Python's parser takes it: NaN, infinity, half characters (400, path)."""
    if not body:
        return
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise Refusal("invalid_json", f"The body is not JSON: {_reason(error)}.", "Send one JSON object.") from error
    for path, scalar in _scalars(value):
        if isinstance(scalar, float) and not math.isfinite(scalar):
            raise Refusal("invalid_json", f"{path or 'The body'} is {scalar}, which is not JSON.", _FINITE, path)
        if isinstance(scalar, str) and not _is_text(scalar):
            raise Refusal("invalid_json", f"{path or 'The body'} holds half a character.", "Send valid Unicode.", path)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a member twice: which of the two is meant, parsers decide differently."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0].encode("utf-8", "replace").decode()
        raise Refusal("invalid_json", f"The body names {twice} twice.", "Send each name once.", twice)
    return members


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form; the last one of a name counts. Refuses what is no form (400)."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX)
    except ValueError as error:
        raise Refusal("invalid_input", "The form can't be read.", "Reload the page and send it again.") from error
    return dict(pairs)


def _scalars(value: Any) -> Iterator[tuple[str, object]]:
    """Yield every key and leaf of a JSON value with its path, without recursion: the body decides the depth."""
    waiting = [("", value)]
    while waiting:
        path, current = waiting.pop()
        if isinstance(current, dict):
            for key, member in current.items():
                place = f"{path}.{key}" if path else key
                yield place.encode("utf-8", "replace").decode(), key
                waiting.append((place, member))
        elif isinstance(current, list):
            waiting.extend((f"{path}[{index}]", member) for index, member in enumerate(current))
        else:
            yield path.encode("utf-8", "replace").decode(), current


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{error.msg} at line {error.lineno}, column {error.colno}"
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return "a number has too many digits"


def _too_large() -> Refusal:
    return Refusal("too_large", f"The body is larger than {BODY_BYTES_MAX} bytes.", "Send less at a time.")
