"""What a terminal would obey is shown instead: on every surface that people's texts come to."""

from __future__ import annotations

import io
import json
import logging

import pytest

from kizami.cli.harmless import harmless, harmless_json
from kizami.cli.logs import JsonLines, Lines, Plain
from kizami.cli.printing import notice, print_facts, print_json, print_line, print_table

EVIL = "a\x1b[31mb\x07c\x85d\u2028e\u202ef\x9bg\rh"
SHOWN = r"a\x1b[31mb\x07c\x85d\u2028e\u202ef\x9bg\x0dh"
ACTIVE = [chr(number) for number in (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066)]


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "刻み 🕰 café\tline\nnext"
    assert harmless(text) == harmless_json(text) == text


@pytest.mark.parametrize("character", ACTIVE, ids=lambda character: f"U+{ord(character):04X}")
def test_a_document_means_the_same_and_holds_nothing_active(character: str) -> None:
    document = harmless_json(json.dumps({"k": character}, ensure_ascii=False))
    assert json.loads(document) == {"k": character}
    assert character not in document
    assert character not in harmless(character)


def test_commands_print_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(EVIL)
    notice(EVIL)
    print_table(("name",), [(EVIL,)], "none")
    print_facts([("name", EVIL)])
    print_json({"name": EVIL})
    out, err = capsys.readouterr()
    assert err == f"{SHOWN}\n"
    assert out.count(SHOWN) == 3
    assert not any(character in out for character in ACTIVE)
    assert json.loads(out[out.index("{") :]) == {"name": EVIL}


@pytest.mark.parametrize("formatter", [Lines(), JsonLines(), Plain("%(message)s")], ids=["lines", "json", "terminal"])
def test_logs_hold_nothing_that_a_terminal_obeys(formatter: logging.Formatter) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    error = ValueError(EVIL)
    raised = (type(error), error, error.__traceback__)
    handler.emit(logging.LogRecord("kizami.test", logging.ERROR, __file__, 1, "%s", (EVIL,), raised))
    written = stream.getvalue()
    assert "a" in written
    assert not any(character in written for character in ACTIVE)
