"""What is kept of a job's result and errors."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, is_dataclass
from typing import Final

RESULT_CHARACTERS_MAX: Final = 8_192
ERROR_CHARACTERS_MAX: Final = 2_000
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""U+0000 as JSON writes it; after an odd number of backslashes it is innocent text."""


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
    """Return an error for the log: its type and message, 2,000 characters at most, without NUL."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {_message(error)}"
    text = text.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= ERROR_CHARACTERS_MAX else text[: ERROR_CHARACTERS_MAX - 1] + "…"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - an exception that can't even be shown must still be reported
        return f"its message can't be shown ({type(broken).__name__})"


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value
