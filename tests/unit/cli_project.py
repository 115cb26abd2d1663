"""A folder with a user's module in it, and the command run there: in this process, or in one of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import kizami
from kizami.cli.commands import execute

APP = """
from datetime import timedelta
from kizami import Kizami, Window
app = Kizami("reports")

@app.performer
def hello() -> str:
    return "hi"

app.schedule("morning", hello, cron="0 9 * * 1-5", time_zone="Asia/Tokyo", window=Window("08:00", "10:00"))
app.schedule("often", hello, every=timedelta(hours=1))
"""

OUR_VARIABLES = (
    "KIZAMI_DATABASE_URL",
    "KIZAMI_MIRROR_DATABASE_URL",
    "KIZAMI_TOKEN",
    "KIZAMI_VIEWER_TOKEN",
    "SLACK_API_URL",
    "SLACK_BOT_TOKEN",
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Project:
    """A user's folder, which is the working directory."""

    folder: Path
    captured: pytest.CaptureFixture[str]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Ran:
        """Run `kizami` with the arguments."""
        self.captured.readouterr()
        with _as_new_process():
            code = execute(arguments)
        shown = self.captured.readouterr()
        return Ran(int(code), shown.out, shown.err)


@contextmanager
def _as_new_process() -> Iterator[None]:
    """Forget afterwards what a process's end would: imported modules, the search path, logging."""
    path, modules = list(sys.path), set(sys.modules)
    handlers, level = list(logging.root.handlers), logging.root.level
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if not name.startswith("kizami"):
                _forget_user_module(name)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        for name in ("kizami.job", "kizami.worker", "uvicorn"):
            logging.getLogger(name).setLevel(logging.NOTSET)


def _forget_user_module(name: str) -> None:
    origin = getattr(sys.modules[name], "__file__", None) or ""
    if Path(origin).is_relative_to(Path.cwd()):
        del sys.modules[name]


def project_in(folder: Path, captured: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose module is called reports; no environment variable of ours is set."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in OUR_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    made = Project(folder, captured)
    made.write("reports.py", APP)
    return made


def process_environment() -> dict[str, str]:
    """Return this process's environment, with the package under test on the path from every folder."""
    return os.environ | {"PYTHONPATH": str(Path(kizami.__file__).parents[1])}


def kizami_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m kizami` in a folder until it ends."""
    command = [sys.executable, "-m", "kizami", *arguments]
    return subprocess.run(command, cwd=folder, env=process_environment(), capture_output=True, text=True, check=False)
