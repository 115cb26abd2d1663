"""From what came back over the wire to what is known: success, refusal, or unclear. Nothing is success by default."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from kizami.slack.error_codes import RATE_LIMITED, ErrorClass, error_class
from kizami.slack.errors import ApiError, NotSent, RateLimited, ServerError, SlackError, Unclear
from kizami.slack.policy import DEFAULT_WAIT_MS, retry_after_ms


def read_answer(method: str, body: object, needs: str = "") -> dict[str, Any]:
    """Return the body of a 200 that says ok and has the field `needs`; raise Unclear for anything less."""
    if not isinstance(body, dict) or body.get("ok") is not True:
        raise Unclear(method, "not_json")
    if needs and not (isinstance(body.get(needs), str) and body[needs]):
        raise Unclear(method, f"ok_without_{needs}")
    return body


def read_failure(method: str, error: Exception) -> SlackError:
    """Return what an exception out of slack_sdk says about the call."""
    from aiohttp import ClientConnectorError, ClientError, InvalidURL  # noqa: PLC0415 - as heavy as the SDK
    from slack_sdk.errors import SlackApiError  # noqa: PLC0415 - only callers pay for the SDK

    if isinstance(error, SlackApiError):
        return _read_response(method, error.response)
    if isinstance(error, ClientConnectorError | InvalidURL):
        return NotSent(method, str(error).replace(" ssl:default", ""))  # aiohttp says it of plain HTTP too
    if isinstance(error, TimeoutError):
        return Unclear(method, "timeout")
    if isinstance(error, ClientError | OSError):
        return Unclear(method, "connection_lost", type(error).__name__)
    return Unclear(method, "not_json", type(error).__name__)  # the SDK stumbled over a body of another shape


def _read_response(method: str, response: Any) -> SlackError:
    """Sort a response that the SDK refused; after broken JSON it is aiohttp's own, without the SDK's fields."""
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
    data = getattr(response, "data", None)
    body: dict[str, Any] = data if isinstance(data, dict) else {}
    code = body.get("error")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(method, retry_after_ms(header(response.headers, "Retry-After")))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerError(method, status)
    if not isinstance(code, str):
        return Unclear(method, "not_json", f"HTTP {status}")
    if code in RATE_LIMITED:
        return RateLimited(method, DEFAULT_WAIT_MS)
    if error_class(code) is ErrorClass.UNCLEAR:
        return Unclear(method, code)
    return ApiError(method, code, *_said(body))


def _said(body: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Return Slack's validation messages, which alone name the place, and the scopes it misses."""
    metadata = body.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, dict) else None
    texts = [text for part in (messages, body.get("errors")) if isinstance(part, list) for text in part]
    needed = body.get("needed")
    return tuple(str(text)[:300] for text in texts[:10]), f"needs the scope {needed}" if needed else ""


def header(headers: Any, name: str) -> str | None:
    """Return a header of an answer, whatever the case of its name."""
    found = [value for key, value in headers.items() if key.lower() == name.lower()]
    return found[0] if found else None
