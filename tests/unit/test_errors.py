from __future__ import annotations

from collections.abc import Iterator

from kizami.core.errors import KizamiError, StoreBusyError


def test_every_error_has_a_code_of_its_own() -> None:
    """Programs tell errors apart by code: two classes with one code could not be told apart."""
    ours = {kind for kind in _all_kinds(KizamiError) if kind.__module__.startswith("kizami.")}
    codes = [kind.code for kind in ours]
    assert [kind for kind in ours if codes.count(kind.code) > 1] == []


def test_an_error_reads_as_one_text_with_its_remedy_and_keeps_its_facts() -> None:
    error = StoreBusyError("kizami.db is locked.", remedy="Stop the other writer.", waited_ms=5000)
    assert str(error) == "kizami.db is locked. Stop the other writer."
    assert error.facts == {"waited_ms": 5000}


def test_an_error_without_a_remedy_is_its_message() -> None:
    assert str(KizamiError("No such job.")) == "No such job."


def _all_kinds(base: type[KizamiError]) -> Iterator[type[KizamiError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _all_kinds(kind)
