"""Whatever stands on the command line, the answer is an answer or one sentence; never a traceback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kizami.cli.commands import commands
from kizami.cli.exit_codes import ExitCode
from tests.unit.cli_project import Project, project_in

WORDS = [
    *("", " ", "-", "--", "-1", "0", "1", "2.5", "nan", "inf", "-inf", "1e400", "9" * 5_000, "x" * 5_000, "99999"),
    *("\0", "a\0b", "a\udcff", "\u202e", "刻み", "[red]x[/]", "%s%n", "{}", "'", '"', "a b", "a\nb", "$HOME", "../.."),
    *("a..b", ".x", "::1", "[::1", "0.0.0.0:80", "http://x", "x" * 64 + ".y", "*" * 70),
    *("* * * * *", "61 * * * *", "Mars/Base", "../etc/passwd", "UTC", "1d", "0s", "999999999d", "5m", "-5m"),
    *("sqlite:///x?y", "sqlite://", "postgresql://u:p@h/x", "sqlite:///" + "x" * 5_000, "sqlite:///a%00b", "://"),
    *("2024-05-10T00:00:00Z", "2024-05-10", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1715299200000"),
    *(
        "reports:app",
        "reports:",
        ":app",
        "reports:none",
        "reports:hello",
        "boom:app",
        "loop:app",
        "os:path",
        "hello#0:x",
    ),
    *("SCHEDULED", "hello", "morning", "C0STATUS", "SELECT 1", "#0:", "hello#-1:x", "hello#0:" + "x" * 300),
]
VALUE = st.sampled_from(WORDS) | st.text(max_size=20) | st.integers().map(str) | st.floats().map(str)
RIGHT = {"place": "reports:app", "name": "morning", "job_id": "hello#0:x", "query": "SELECT 1", "channel": "C0STATUS"}
STAYS = {"run": ("port",), "sandbox": ("port",), "demo": ("speed",)}
"""Commands that end when a signal comes, and the option that is always wrong here, so that they end at once."""


def _commands() -> dict[tuple[str, ...], Any]:
    """Return every command by its words."""
    top: Any = typer.main.get_command(commands())
    found: dict[tuple[str, ...], Any] = {}
    for name, command in top.commands.items():
        for sub, inner in getattr(command, "commands", {"": command}).items():
            found[name, *([sub] if sub else [])] = inner
    return found


COMMANDS = _commands()


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Draw a command that would be right, but for one or two of its arguments and options."""
    words = draw(st.sampled_from(sorted(COMMANDS)))
    parameters = [one for one in COMMANDS[words].params if one.name not in ("help", *STAYS.get(words[0], ()))]
    drawn = draw(st.lists(st.sampled_from(parameters), min_size=1, max_size=2, unique_by=id))
    line = list(words)
    for parameter in parameters:
        is_drawn = any(parameter is one for one in drawn)
        value = draw(VALUE) if is_drawn else RIGHT.get(parameter.name)
        if parameter.param_type_name == "argument":
            line.append(value or "")
        elif is_drawn and getattr(parameter, "is_flag", False):
            line.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
        elif value is not None and (is_drawn or parameter.required):
            line += [parameter.opts[0], value]
    every = words == ("mirror",) and not {"--cron", "--every"} & set(line)
    return [*line, "--every", "5m"] if every else line


@pytest.fixture(scope="module")
def taken_port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as holder:
        yield int(holder.getsockname()[1])


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    made = project_in(tmp_path, capsys, monkeypatch)
    made.write("reports.py", (tmp_path / "reports.py").read_text() + "\nnone = None\n")
    made.write("boom.py", "class Mute(BaseException):\n    def __str__(self): raise ValueError\nraise Mute")
    made.write("loop.py", "from loop import app")
    made.write("shop.sqlite", "")
    monkeypatch.setenv("KIZAMI_MIRROR_DATABASE_URL", "sqlite:///shop.sqlite")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-sandbox")
    return made


def test_the_drawn_lines_reach_every_command() -> None:
    assert {words[0] for words in COMMANDS} == {
        *("run", "check", "tick", "sandbox", "mirror", "demo", "schedules", "jobs", "deliveries", "boards", "migrate"),
    }


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(line=command_lines())
def test_no_command_line_ends_in_a_traceback(
    project: Project, monkeypatch: pytest.MonkeyPatch, taken_port: int, line: list[str]
) -> None:
    stays = line[0] == "mirror" or line[0] in STAYS
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///nowhere/kizami.db" if stays else "sqlite:///kizami.db")
    wrong = {"port": str(taken_port), "speed": "0"}
    ending = [part for option in STAYS.get(line[0], ()) for part in (f"--{option}", wrong[option])]
    ran = project.run(line[0], *ending, *line[1:])
    assert ran.code in set(ExitCode) - {ExitCode.BUG}, ran.err
    assert "Traceback" not in ran.err
    if ran.code > ExitCode.FAILED:
        assert ran.err.startswith("Usage: ") or ran.err.count("\n") == 1 or "\nkizami: " in f"\n{ran.err}", ran.err
        assert len(ran.err) < 12_000
