"""Payloads: JSON, checked against the performer's annotated type when enqueued and rebuilt when performed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from kizami.core.errors import DefinitionError, PayloadError

PAYLOAD_CHARACTERS_MAX: Final = 1_000_000
_DEPTH_MAX: Final = 100
_FAULTS_MAX: Final = 10
_PATH_MAX: Final = 200
_REMEDY: Final = "Annotate the payload with a pydantic model, a dataclass, a TypedDict or a plain JSON type."
_REMEDIES: Final[Mapping[str | None, str]] = MappingProxyType(
    {"typed-dict-version": "Import TypedDict from typing_extensions instead of typing, or run Python 3.12 or later."}
)

_WRITE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class PayloadType:
    """The type of a performer's payload; without an annotation, any JSON."""

    def __init__(self, owner: str, annotation: Any) -> None:
        self._owner = owner
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        except (PydanticUserError, TypeError) as error:
            raise DefinitionError(
                f"{owner}: the payload type {annotation!r} can't be checked: {str(error).splitlines()[0]}",
                remedy=_REMEDIES.get(getattr(error, "code", None), _REMEDY),
            ) from error

    def encode(self, value: object) -> str:
        """Return a payload as compact JSON. Raises PayloadError naming the place."""
        try:
            checked = self._adapter.validate_python(value)
            self._refuse_non_json(
                self._adapter.dump_python(checked, warnings=False), "payload", 0
            )  # JSON mode writes null for NaN
            plain = self._adapter.dump_python(checked, mode="json", warnings=False)
        except ValidationError as error:
            raise self._refusal(error) from None
        except (ValueError, TypeError) as error:
            raise PayloadError(f"{self._owner}: the payload is not JSON ({error}).", path="payload") from error
        self._refuse_non_json(plain, "payload", 0)
        text = self._compact(plain)
        if len(text) > PAYLOAD_CHARACTERS_MAX:
            raise PayloadError(
                f"{self._owner}: the payload is {len(text)} characters of JSON.",
                remedy=f"Keep it under {PAYLOAD_CHARACTERS_MAX}: store the data elsewhere and pass its key.",
                path="payload",
            )
        self.decode(text)  # pydantic takes an instance of the type as it is, even with wrong fields: it must fit too
        return text

    def meaning(self, value: object) -> str:
        """Return the payload as JSON that every process writes alike, sets and keys in order. Raises PayloadError."""
        plain = json.loads(self.encode(value))
        checked = self._adapter.dump_python(self._adapter.validate_python(value), warnings=False)
        return json.dumps(_in_order(checked, plain), sort_keys=True)

    def schema(self) -> str | None:
        """Return the JSON Schema of the type as text, None where it has none (a type with code of its own)."""
        try:
            return json.dumps(self._adapter.json_schema(), separators=(",", ":"), sort_keys=True)
        except PydanticUserError:
            return None

    def decode(self, text: str) -> Any:
        """Return the payload that `encode` wrote. Raises PayloadError if it doesn't fit the type any more."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise self._refusal(error) from None

    def _compact(self, plain: object) -> str:
        try:
            return _WRITE(plain)
        except ValueError as error:  # an integer of thousands of digits
            raise PayloadError(f"{self._owner}: the payload is not JSON ({error}).", path="payload") from error

    def _refusal(self, error: ValidationError) -> PayloadError:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [(_place(fault["loc"]), fault["msg"]) for fault in faults[:_FAULTS_MAX]]
        more = len(faults) - len(shown)
        sentence = "; ".join(f"{path} is refused: {message}" for path, message in shown)
        facts = {} if len(shown) == 1 else {"errors": tuple(shown)}
        return PayloadError(
            f"{self._owner}: {sentence}{f'; and {more} more' if more else ''}.",
            remedy="Give a payload of the performer's annotated type.",
            path=shown[0][0],
            **facts,
        )

    def _refuse_non_json(self, value: object, path: str, depth: int) -> None:
        reason = _why_not_json(value, depth)
        if reason is not None:
            raise PayloadError(f"{self._owner}: {path} {reason}.", remedy="Replace it.", path=path)
        if isinstance(value, dict):
            for key, inner in value.items():
                self._refuse_non_json(key, f"{path} (a key)", depth + 1)
                self._refuse_non_json(inner, f"{path}.{key}", depth + 1)
        elif isinstance(value, list | tuple | set | frozenset):
            for index, inner in enumerate(value):
                self._refuse_non_json(inner, f"{path}.{index}", depth + 1)


def _place(steps: tuple[int | str, ...]) -> str:
    path = ".".join(["payload", *map(str, steps)])
    return path if len(path) <= _PATH_MAX else path[: _PATH_MAX - 1] + "…"


def _in_order(value: object, plain: Any) -> Any:
    """Return `plain`, the JSON of `value`, with the elements of sets sorted: their own order differs by process."""
    match value, plain:
        case ((set() | frozenset()), list()):
            inner = [_in_order(frozenset(), each) for each in plain] if _holds_sets(value) else plain
            return sorted(inner, key=json.dumps)
        case ((list() | tuple()), list()) if len(value) == len(plain):
            return [_in_order(*pair) for pair in zip(value, plain, strict=True)]
        case dict(), dict() if len(value) == len(plain):
            return {key: _in_order(value[own], plain[key]) for own, key in zip(value, plain, strict=True)}
        case _:
            return plain


def _holds_sets(value: set[Any] | frozenset[Any]) -> bool:
    return any(isinstance(each, frozenset) for each in value)


def _why_not_json(value: object, depth: int) -> str | None:
    if depth > _DEPTH_MAX:
        return f"is nested deeper than {_DEPTH_MAX} levels"
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, which is not JSON"
    if isinstance(value, str) and "\x00" in value:
        return "contains the character U+0000, which databases can't keep"
    if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
        return "contains a lone surrogate, which is not text"
    return None
