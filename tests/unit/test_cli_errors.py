from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kizami.cli.exit_codes import ExitCode, exit_code_of
from kizami.cli.numbers import require_within
from kizami.core import errors
from kizami.core.errors import InvalidInputError, KizamiError
from kizami.slack.errors import RateLimited
from tests.unit.cli_project import APP, Project, kizami_process, process_environment, project_in


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    return project_in(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("reports", "'reports' doesn't name an app. Write reports:app."),
        ("reports.py:app", "'reports.py:app' doesn't name an app. Write reports:app."),
        ("./sub/reports.py:it", "Write sub.reports:it."),
        (":app", "Write reports:app."),
        ("absent:app", "There is no module absent. Run the command in the folder that holds it"),
        ("reports.deeper:app", "There is no module reports.deeper."),
        ("reports:nope", "Module reports has no nope. Write reports:NAME"),
        ("reports:hello", "reports:hello is of type Performer, not a Kizami app. Name the variable"),
        ("reports:none", "reports:none is None, not a Kizami app. Let reports set none"),
        ("reports:factory", "is a function, not a Kizami app. If it makes the app, add to reports: app = factory()"),
        ("kizami:Kizami", "kizami:Kizami is a class, not a Kizami app."),
        ("reports:app.name", "'reports:app.name' doesn't name an app. Write reports:app."),
        (".good:app", "'.good:app' doesn't name an app. Write good:app."),
        ("a..b:app", "'a..b:app' doesn't name an app. Write a.b:app."),
        ("mod:", "'mod:' doesn't name an app. Write mod:app."),
        ("9" * 5_000, "Write reports:app."),
    ],
)
def test_a_name_that_leads_nowhere_is_answered_with_the_remedy(project: Project, place: str, sentence: str) -> None:
    project.write("reports.py", f"{APP}\nnone = None\ndef factory(): return app\n")
    ran = project.run("check", place)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "import nosuchthing",
            "mine.py:1: ModuleNotFoundError: No module named 'nosuchthing'. Install what it imports.",
        ),
        ("x = 1\ndef f():\n    raise ValueError('no [red]way')\nf()", "mine.py:3: ValueError: no [red]way."),
        ("import json\njson.loads('{')", "mine.py:2: JSONDecodeError: "),
        ("\ndef (", "mine.py:2: SyntaxError: "),
        ("def __getattr__(name):\n    raise OSError('gone')", "mine.py:2: OSError: gone. Correct it there."),
        ("class Mute(BaseException):\n    def __str__(self): return 1 / 0\nraise Mute", "Mute: (it can't say why)."),
        ("raise SystemExit(0)", "mine.py:1: SystemExit: 0."),
        ("from kizami import Kizami\n\napp = Kizami('bad name')", "App name 'bad name' is not allowed. "),
    ],
)
def test_an_error_in_the_users_module_is_shown_with_its_line_and_no_traceback(
    project: Project, source: str, sentence: str
) -> None:
    project.write("mine.py", source)
    ran = project.run("check", "mine:app")
    assert ran.code == 2
    assert sentence in ran.err
    assert "mine.py:" in ran.err
    assert "Traceback" not in ran.err
    assert ran.err.count("\n") == 1


def test_every_error_of_the_package_has_an_exit_code() -> None:
    """New kinds inherit the code of what they are a kind of."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KizamiError)]
    assert {kind.code: int(exit_code_of(kind("It is so."))) for kind in kinds} == {
        "kizami_error": 1,
        "invalid_definition": 2,
        "invalid_cron": 2,
        "invalid_time_zone": 2,
        "invalid_input": 2,
        "invalid_payload": 2,
        "other_database": 2,
        "not_planned": 2,
        "not_found": 5,
        "wrong_state": 5,
        "cursor_moved": 5,
        "gone": 5,
        "fire_refused": 1,
        "sync_in_progress": 5,
        "configuration": 3,
        "store_unavailable": 4,
        "store_busy": 4,
        "store_full": 4,
        "store_read_only": 4,
        "store_slow": 4,
        "store_unclear": 4,
        "store_version": 4,
    }
    assert exit_code_of(RateLimited("chat.postMessage", 1_000)) is ExitCode.SLACK


def test_the_documented_exit_codes_are_the_real_ones() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert rows == [str(int(code)) for code in ExitCode]


def test_a_database_that_cannot_be_used_is_exit_3_and_one_that_cannot_be_opened_exit_4(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "mysql://me:secret@host/x")
    unsupported = project.run("jobs", "list", "reports:app")
    assert (unsupported.code, "secret" in unsupported.err) == (3, False)
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///nowhere/kizami.db")
    assert project.run("jobs", "list", "reports:app").code == 4


@pytest.mark.parametrize("command", [("jobs", "list"), ("schedules", "list"), ("schedules", "pause"), ("tick",)])
def test_commands_that_end_at_once_refuse_a_database_in_memory(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///:memory:")
    ran = project.run(*command, "reports:app", *(() if command[-1] == "list" else ("morning",)))
    assert (ran.code, "begins and ends with this command. Set KIZAMI_DATABASE_URL" in ran.err) == (3, True)


def test_a_locked_database_promises_a_command_no_repetition(project: Project) -> None:
    assert project.run("tick", "reports:app", "morning").code == 0
    with closing(sqlite3.connect(project.folder / "kizami.db", isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        ran = project.run("tick", "reports:app", "morning", "--manual")
    assert ran.code == 4
    assert "and try again; a running worker does so by itself." in ran.err


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("x" * 70 + ".example", "no such host is known. Name 127.0.0.1"),
        ("a..b", "no such host is known. Name 127.0.0.1"),
        ("", "no such host is known. Name 127.0.0.1"),
        ("192.0.2.1", "It is not an address of this machine. Name 127.0.0.1"),
    ],
)
def test_a_host_that_can_not_be_had_is_answered_with_a_host(project: Project, host: str, sentence: str) -> None:
    ran = project.run("run", "reports:app", "--host", host, "--port", "0")
    assert (ran.code, sentence in ran.err, "another port" in ran.err) == (3, True, False)


def test_an_argument_that_is_no_text_is_refused_by_its_place(project: Project) -> None:
    ran = project.run("check", "a\udcff:app")
    assert (ran.code, "Argument 2, 'a\\udcff:app', is not UTF-8 text." in ran.err) == (2, True)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400", "x"])
@pytest.mark.parametrize(
    "command",
    [
        ("sandbox", "--time-scale"),
        ("sandbox", "--port"),
        ("demo", "--speed"),
        ("demo", "--seed"),
        ("demo", "--rounds"),
        ("tick", "reports:app", "morning", "--wait"),
        ("jobs", "list", "reports:app", "--limit"),
        ("schedules", "preview", "reports:app", "morning", "--count"),
        ("run", "reports:app", "--concurrency"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_by_its_option(
    project: Project, command: tuple[str, ...], value: str
) -> None:
    ran = project.run(*command, value)
    assert (ran.code, command[-1] in ran.err) == (2, True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 10.1])
def test_no_number_is_between_two_others_by_being_none(value: float) -> None:
    with pytest.raises(InvalidInputError, match=r"--wait is .*Give a number from 0 to 10\."):
        require_within("--wait", value, 0, 10)


def test_a_bug_is_told_apart_from_bad_news(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kizami.cli.check.load_app", broken)
    ran = project.run("check", "reports:app")
    assert ran.code == 70
    assert "Traceback" in ran.err


def test_python_m_kizami_is_the_same_command(tmp_path: Path) -> None:
    done = kizami_process(tmp_path, "check", "absent:app")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kizami: There is no module absent.")


def test_a_missing_command_line_package_is_a_sentence() -> None:
    program = "import sys; sys.modules['typer'] = None; from kizami.cli.main import main; main()"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=process_environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, "Install kizami[cli]" in done.stderr) == (3, True)
    assert "Traceback" not in done.stderr


def test_the_demo_has_its_own_options_and_refuses_others(project: Project) -> None:
    assert "--verify" in project.run("demo", "--help").out
    ran = project.run("demo", "--nosuchoption")
    assert (ran.code, "No such option" in ran.err) == (2, True)


def test_no_command_loads_what_only_another_one_needs() -> None:
    program = "import kizami.cli.commands, sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=process_environment(), capture_output=True, text=True, check=True)
    assert not {"fastapi", "starlette", "sqlalchemy", "slack_sdk", "uvicorn", "kizami.demo"} & set(done.stdout.split())
