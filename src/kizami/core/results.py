"""What is kept of a job's result and errors."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass
from typing import Final

from kizami.core.errors import KizamiError

RESULT_CHARACTERS_MAX: Final = 8_192
ERROR_CHARACTERS_MAX: Final = 2_000
_CHAIN_MAX: Final = 10
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""U+0000 as JSON writes it; after an odd number of backslashes it is innocent text."""


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result as it is kept: compact JSON, or none and the reason why it was dropped."""

    text: str | None
    note: str | None = None


NOTHING: Final = KeptResult(None)


def keep_result(value: object) -> KeptResult:
    """Return what is kept of a performer's return value.

    Raises TypeError for a value that is work nobody has done: an awaitable or a generator.
    """
    if value is None:
        return NOTHING
    if inspect.iscoroutine(value):
        value.close()  # or Python warns, later and elsewhere, that it was never awaited
    if inspect.isawaitable(value) or inspect.isasyncgen(value) or inspect.isgenerator(value):
        kind = type(value).__name__
        message = f"the performer returned a {kind}, which nobody runs: make it async def and await, or return a value"
        raise TypeError(message)
    return KeptResult(*encode_result(value))


def encode_result(value: object) -> tuple[str | None, str | None]:
    """Return (compact JSON, None), or (None, reason) when the result is too large or is not JSON.

    The limit is 8,192 code points of compact JSON. NaN and infinity are not JSON.
    """
    if value is None:
        return None, None
    try:
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode("utf-8")
    except Exception as error:  # noqa: BLE001 - whatever a result's own serializer raises, the job itself succeeded
        return None, shorten_error(f"result dropped: it is not JSON ({_message(error)})")
    if len(text) > RESULT_CHARACTERS_MAX:
        return None, f"result dropped: {len(text)} characters of JSON, {RESULT_CHARACTERS_MAX} at most are kept"
    if _NUL.search(text):
        return None, "result dropped: it contains the character U+0000"
    return text, None


def shorten_error(error: BaseException | str) -> str:
    """Return an error for the log, 2,000 characters at most, without NUL.

    Its type and message, what is in it when it is a group, then what it was caused by; a KizamiError says that itself.
    """
    text = error if isinstance(error, str) else "; caused by ".join(map(_shown, _chain(error)))
    text = text.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= ERROR_CHARACTERS_MAX else text[: ERROR_CHARACTERS_MAX - 1] + "…"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, as a traceback would name them; chains may be long, and may bite their tail."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and not any(link is one for one in seen) and len(seen) < _CHAIN_MAX:
        yield link
        if isinstance(link, KizamiError):  # its sentence tells the cause already
            return
        seen.append(link)
        link = link.__cause__ if link.__cause__ or link.__suppress_context__ else link.__context__


def _shown(error: BaseException) -> str:
    shown = f"{type(error).__name__}: {_message(error)[:ERROR_CHARACTERS_MAX]}"
    if isinstance(error, BaseExceptionGroup):
        shown = f"{shown} [{', '.join(map(_shown, _leaves(error)[:_CHAIN_MAX]))}]"
    return shown


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """Return the errors at the ends of nested groups."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = list(group.exceptions)
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting[:0] = error.exceptions
        else:
            leaves.append(error)
    return leaves


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 - an exception that can't even be shown must still be reported
        return f"its message can't be shown ({type(broken).__name__})"


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value
