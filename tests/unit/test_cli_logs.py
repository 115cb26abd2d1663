from __future__ import annotations

import json
import logging

from kizami.cli.logs import JsonLines, Lines


def _record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    error = ValueError("over\nlines")
    raised = (type(error), error, None) if failed else None
    record = logging.LogRecord("kizami.test", logging.WARNING, __file__, 1, message, arguments, raised)
    record.created = 1_715_299_200.25
    return record


def test_a_record_is_one_line_in_utc() -> None:
    assert Lines().format(_record("job %s\r\nis slow", "a")) == (
        "2024-05-10T00:00:00.250Z WARNING kizami.test: job a\\r\\nis slow"
    )


def test_a_traceback_stays_on_its_line() -> None:
    line = Lines().format(_record("it failed", failed=True))
    assert "\n" not in line
    assert line.endswith("ValueError: over\\nlines")


def test_a_json_line_has_the_record_as_fields() -> None:
    line = JsonLines().format(_record("job %s failed", "é", failed=True))
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["exception"].endswith("ValueError: over\nlines")
    assert {name: fields[name] for name in ("time", "level", "logger", "message")} == {
        "time": "2024-05-10T00:00:00.250Z",
        "level": "warning",
        "logger": "kizami.test",
        "message": "job é failed",
    }
