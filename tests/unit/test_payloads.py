from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from kizami.core.errors import DefinitionError, PayloadError
from kizami.core.payloads import PAYLOAD_CHARACTERS_MAX, PayloadType
from kizami.web.problems import problem_of

ANY = PayloadType("send", Any)
INNOCENT = "\\" + "u0000"

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


class Mail(BaseModel):
    to: str
    on: date


@dataclass
class Point:
    x: int
    y: float = 0.5


class Row(TypedDict):
    id: int


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Mail, Mail(to="a", on=date(2026, 1, 2))), (Point, Point(1)), (Row, {"id": 1}), (list[int], [1, 2]), (Any, None)],
)
def test_a_payload_is_rebuilt_as_its_annotated_type(annotation: Any, value: object) -> None:
    payload = PayloadType("send", annotation)
    assert payload.decode(payload.encode(value)) == value


@given(JSON)
def test_json_comes_back_as_it_went(value: object) -> None:
    text = ANY.encode(value)
    assert ANY.decode(text) == value
    assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("number", [9_007_199_254_740_993, 2**63, 10**30, -(2**63)])
def test_every_digit_of_a_large_integer_survives(number: int) -> None:
    """B058."""
    assert ANY.decode(ANY.encode({"n": number})) == {"n": number}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("annotation", [Any, dict[str, list[float]]])
def test_what_is_not_a_json_number_is_refused_with_its_place(number: float, annotation: Any) -> None:
    """B056: not stored, and not made null in silence."""
    with pytest.raises(PayloadError, match="not JSON") as caught:
        PayloadType("send", annotation).encode({"a": [1.0, number]})
    assert caught.value.facts == {"path": "payload.a.1"}


@pytest.mark.parametrize(
    ("value", "path"),
    [({"a": ["x\x00y"]}, "payload.a.0"), ({"k\x00": 1}, "payload (a key)"), ("\ud800", "payload")],
)
def test_characters_that_databases_lose_are_refused_with_their_place(value: object, path: str) -> None:
    """B055."""
    with pytest.raises(PayloadError) as caught:
        ANY.encode(value)
    assert caught.value.facts == {"path": path}


def test_the_innocent_text_of_an_escape_survives() -> None:
    """B055: six characters that only look like U+0000."""
    assert ANY.decode(ANY.encode({INNOCENT: [INNOCENT]})) == {INNOCENT: [INNOCENT]}


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "value",
    [_nested(101), _nested(20_000), _circle(), 10**5_000, object(), b"\xff", "x" * PAYLOAD_CHARACTERS_MAX],
    ids=["deep", "very deep", "circular", "huge integer", "object", "bytes", "long"],
)
def test_what_is_not_a_payload_is_refused_as_one(value: object) -> None:
    with pytest.raises(PayloadError, match="send: ") as caught:
        ANY.encode(value)
    assert str(caught.value.facts["path"]).startswith("payload")


def test_a_value_of_the_wrong_type_is_refused_with_its_place() -> None:
    with pytest.raises(PayloadError, match=r"payload\.to is refused") as caught:
        PayloadType("send", Mail).encode({"to": 5, "on": "2026-01-02"})
    assert caught.value.facts == {"path": "payload.to"}


def test_a_stored_payload_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(PayloadError, match=r"payload\.on"):
        PayloadType("send", Mail).decode('{"to":"a"}')


def test_a_type_that_cannot_be_checked_is_refused_at_definition() -> None:
    with pytest.raises(DefinitionError, match="send: the payload type"):
        PayloadType("send", object())


class Order(BaseModel):
    number: int
    lines: list[int]


def test_every_fault_of_a_payload_is_named_with_its_place() -> None:
    with pytest.raises(PayloadError) as caught:
        PayloadType("Performer p", Order).encode({"number": "x", "lines": [1, "y"]})
    assert caught.value.message.startswith("Performer p: payload.number is refused: Input should be a valid integer")
    assert "; payload.lines.1 is refused: Input should be a valid integer" in caught.value.message
    assert caught.value.facts["path"] == "payload.number"
    errors: Any = caught.value.facts["errors"]
    assert [path for path, _ in errors] == ["payload.number", "payload.lines.1"]
    assert [(one.path, one.message) for one in problem_of(caught.value).errors] == list(errors)


def test_many_faults_of_a_payload_are_counted_and_long_places_cut() -> None:
    with pytest.raises(PayloadError, match=r"payload\.lines\.9 is .*; and 15 more\.") as caught:
        PayloadType("Performer p", Order).encode({"number": 1, "lines": ["x"] * 25})
    errors: Any = caught.value.facts["errors"]
    assert len(errors) == 10
    with pytest.raises(PayloadError) as caught:
        PayloadType("Performer p", dict[str, int]).encode({"k" * 5_000: "x"})
    assert len(str(caught.value.facts["path"])) == 200
