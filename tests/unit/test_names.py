from __future__ import annotations

import pytest

from kizami.core.errors import DefinitionError, InvalidInputError
from kizami.core.names import job_id, manual_local_id, require_binding, require_name, split_job_id, tick_local_id

NOT_ASCII_DIGIT = "\N{ARABIC-INDIC DIGIT FIVE}"


@pytest.mark.parametrize("name", ["a", "A-Z_0-9", "-", "9", "x" * 64])
def test_a_name_is_up_to_64_ascii_letters_digits_and_dashes(name: str) -> None:
    assert require_name("schedule", name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 65, "a b", "a\n", "a.b", "a/b", "刻み", NOT_ASCII_DIGIT, "a\x00b", None, 5, b"a"]
)
def test_another_name_is_refused_with_its_kind(name: object) -> None:
    """B055: a schedule's name has no U+0000, and a trailing line break is not overlooked."""
    with pytest.raises(DefinitionError, match="schedule name") as caught:
        require_name("schedule", name)
    assert caught.value.facts == {"kind": "schedule"}


@pytest.mark.parametrize("binding", ["a", "_", "send_mail2", "x" * 128])
def test_a_binding_is_an_ascii_identifier(binding: str) -> None:
    assert require_binding(binding) == binding


@pytest.mark.parametrize("binding", ["", "2a", "a-b", "a\n", "é", "a" + NOT_ASCII_DIGIT, "x" * 129, None])
def test_another_binding_is_refused(binding: object) -> None:
    with pytest.raises(DefinitionError, match="Binding"):
        require_binding(binding)


@pytest.mark.parametrize("parts", [("send", 0, "report-1780000000000"), ("_", 999_999, "a.b-c_1"), ("s", 1, "x" * 200)])
def test_a_job_id_is_read_as_it_was_written(parts: tuple[str, int, str]) -> None:
    assert split_job_id(job_id(*parts)) == parts


@pytest.mark.parametrize(
    "text",
    ["", "send", "send:1", "send#0", "send#0:", "send#:a", "send#00:a", "send#01:a", "send#-1:a", "send#1000000:a",
     "2#0:a", "send#0:a b", "send#0:a\n", "send#0:" + "x" * 201, f"send#{NOT_ASCII_DIGIT}:a"],
)  # fmt: skip
def test_one_job_has_one_id(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        split_job_id(text)
    assert caught.value.facts == {"path": "job_id"}


def test_a_tick_names_its_job_by_schedule_and_time_alone() -> None:
    assert tick_local_id("report", 1_780_000_000_000) == "report-1780000000000"
    assert manual_local_id("report", 1_780_000_000_000, 7) == "report-1780000000000-7-manual"
