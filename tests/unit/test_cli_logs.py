from __future__ import annotations

import io
import json
import logging

import pytest

from kizami import JobContext, Kizami
from kizami.cli.logs import JsonLines, Lines, start_logs
from kizami.testing import run_performer


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


def test_a_json_line_names_the_job_in_which_it_was_made() -> None:
    out = io.StringIO()
    handlers = list(logging.root.handlers), logging.root.level
    app = Kizami()

    @app.performer
    def told(ctx: JobContext) -> None:
        del ctx
        logging.getLogger("shop").info("sold")

    try:
        start_logs(as_json=True, stream=out)
        run_performer(told)
        logging.getLogger("shop").info("closed")
    finally:
        logging.root.handlers[:], level = handlers
        logging.root.setLevel(level)
    inside, outside = (json.loads(line) for line in out.getvalue().splitlines())
    assert (inside["message"], inside["job_id"]) == ("sold", "told#0:test")
    assert "job_id" not in outside


def test_a_terminal_gets_the_message_without_the_formats_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    handlers = list(logging.root.handlers), logging.root.level
    try:
        start_logs(as_json=False, stream=terminal)
        logging.getLogger("kizami.test").info("app [bold]tiny[/] is running")
    finally:
        logging.root.handlers[:], level = handlers
        logging.root.setLevel(level)
    assert "INFO" in terminal.getvalue()
    assert "app [bold]tiny[/] is running" in terminal.getvalue()
    assert "kizami.test" not in terminal.getvalue()
