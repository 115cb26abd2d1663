"""Logs of the commands that stay: coloured on a terminal, one line per record otherwise, or JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler

from kizami.cli.harmless import harmless, harmless_json
from kizami.engine.records import JobLogFilter

if TYPE_CHECKING:
    from typing import TextIO


def start_logs(*, as_json: bool, stream: TextIO | None = None) -> None:
    """Send every record from INFO on to `stream`, by default standard error; of the web server's own, the warnings."""
    target = sys.stderr if stream is None else stream
    handler = _handler(target, as_json=as_json)
    handler.addFilter(JobLogFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def start_quiet_logs(*, as_json: bool) -> None:
    """Send warnings only, and none about jobs: the command's own answer says what became of its job."""
    start_logs(as_json=as_json)
    logging.getLogger().setLevel(logging.WARNING)
    for name in ("kizami.job", "kizami.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _handler(target: TextIO, *, as_json: bool) -> logging.Handler:
    if target.isatty() and not as_json:
        plain = NullHighlighter()
        rich = RichHandler(console=Console(file=target), show_path=False, highlighter=plain, log_time_format="%X")
        rich.setFormatter(Plain("%(message)s"))
        return rich
    handler = logging.StreamHandler(target)
    handler.setFormatter(JsonLines() if as_json else Lines())
    return handler


class Plain(logging.Formatter):
    """The message and its traceback, for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return them without what a terminal would obey."""
        return harmless(super().format(record))


class Lines(logging.Formatter):
    """One line per record, a traceback's line breaks written as backslash and n."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time (UTC), level, logger and message."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        line = f"{_time(record)} {record.levelname} {record.name}: {text}"
        return harmless(line.replace("\r", "\\r").replace("\n", "\\n"))


class JsonLines(logging.Formatter):
    """One JSON object per record; `job_id` tells the job in which it was made."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (job_id := getattr(record, "job_id", None)) is not None:
            fields["job_id"] = job_id
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return harmless_json(json.dumps(fields, ensure_ascii=False))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
