from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kizami.core.progress import clamp_progress
from kizami.core.results import ERROR_CHARACTERS_MAX, RESULT_CHARACTERS_MAX, encode_result, keep_result, shorten_error

INNOCENT = "\\" + "u0000"


@dataclass
class Sent:
    count: int


class Model(BaseModel):
    count: int


class Broken:
    def model_dump(self, mode: str) -> NoReturn:
        raise KeyError(mode)


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None), (0, "0"), ({"a": [1, None]}, '{"a":[1,null]}'), ("刻み", '"刻み"'), (Sent(2), '{"count":2}'),
        (Model(count=3), '{"count":3}'), (10**30, str(10**30)),
    ],
)  # fmt: skip
def test_a_result_is_kept_as_compact_json(value: object, text: str | None) -> None:
    assert encode_result(value) == (text, None)


@pytest.mark.parametrize(
    "value",
    [float("nan"), {"good": 1, "bad": float("inf")}, object(), {1, 2}, "a\x00b", {"\x00": 1}, "\\\x00", "\ud800",
     [10**5_000], Broken()],
)  # fmt: skip
def test_what_can_not_be_kept_is_dropped_with_the_reason(value: object) -> None:
    """B055, B056: never stored wrong, and never an exception after the job has succeeded."""
    text, note = encode_result(value)
    assert text is None
    assert note is not None
    assert note.startswith("result dropped: ")


@pytest.mark.parametrize("value", [INNOCENT, f"a{INNOCENT}", {INNOCENT: f"\\{INNOCENT}"}])
def test_the_innocent_text_of_an_escape_is_kept(value: object) -> None:
    """B055: a backslash, a u and four zeros are six characters like any other."""
    text, note = encode_result(value)
    assert note is None
    assert text is not None
    assert json.loads(text) == value


@given(st.text(st.sampled_from("\\u0\x00a")))
def test_only_a_real_nul_is_found(value: str) -> None:
    """B055."""
    assert (encode_result(value)[0] is None) is ("\x00" in value)


def test_the_limit_counts_code_points_of_json() -> None:
    at_limit = "刻" * (RESULT_CHARACTERS_MAX - 2)
    assert encode_result(at_limit) == (f'"{at_limit}"', None)
    assert encode_result(at_limit + "x")[1] == "result dropped: 8193 characters of JSON, 8192 at most are kept"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"), ("plain", "plain"), (ValueError("a\x00b"), "ValueError: a\\0b"),
        ("\ud800", "\\ud800"), (MuteError(), "MuteError: its message can't be shown (RuntimeError)"),
    ],
)  # fmt: skip
def test_an_error_is_told_by_type_and_message(error: BaseException | str, text: str) -> None:
    """B055: also where the message holds what databases refuse, or can't be made."""
    assert shorten_error(error) == text


def caused(*errors: BaseException) -> BaseException:
    """Return the first error, each one caused by the next."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_an_error_tells_its_causes_in_order() -> None:
    error = caused(ValueError("a"), KeyError("b"), OSError("c"))
    assert shorten_error(error) == "ValueError: a; caused by KeyError: 'b'; caused by OSError: c"


def test_what_was_handled_when_an_error_was_raised_is_told_unless_it_was_put_aside() -> None:
    error = ValueError("a")
    error.__context__ = KeyError("b")
    assert shorten_error(error) == "ValueError: a; caused by KeyError: 'b'"
    error.__suppress_context__ = True
    assert shorten_error(error) == "ValueError: a"


def test_a_chain_that_bites_its_tail_or_never_ends_is_told_in_part() -> None:
    first, second = ValueError("a"), KeyError("b")
    assert shorten_error(caused(first, second, first)) == "ValueError: a; caused by KeyError: 'b'"
    assert shorten_error(caused(*(ValueError(str(number)) for number in range(5_000)))).count("ValueError") == 10


def test_a_group_tells_what_is_in_it_however_deep() -> None:
    group = ExceptionGroup("many", [ExceptionGroup("inner", [ValueError("a")]), KeyError("b")])
    assert shorten_error(group) == "ExceptionGroup: many (2 sub-exceptions) [ValueError: a, KeyError: 'b']"


def letters() -> Iterator[str]:
    yield "a"


async def later() -> None: ...


async def stream() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("begin", [letters, later, stream])
def test_work_that_nobody_has_done_is_no_result(begin: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="which nobody runs"):
        keep_result(begin())


def test_a_long_error_is_cut_and_shows_it() -> None:
    shown = shorten_error("x" * (ERROR_CHARACTERS_MAX + 1))
    assert len(shown) == ERROR_CHARACTERS_MAX
    assert shown.endswith("x…")
    assert shorten_error("x" * ERROR_CHARACTERS_MAX) == "x" * ERROR_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (0, 0.0),
        (1, 1.0),
        (0.25, 0.25),
        (-3, 0.0),
        (7.5, 1.0),
        (10**4_000, 1.0),
        (-(10**4_000), 0.0),
        (float("inf"), 1.0),
    ],
)
def test_progress_is_clamped(value: object, kept: float) -> None:
    assert clamp_progress(value) == kept


@pytest.mark.parametrize("value", [float("nan"), True, False, None, "0.5", 1j, [0.5]])
def test_what_is_no_number_is_no_progress(value: object) -> None:
    assert clamp_progress(value) is None
