"""All commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import typer

from kizami.cli.boards import boards
from kizami.cli.check import check
from kizami.cli.deliveries import deliveries
from kizami.cli.demo import demo
from kizami.cli.exit_codes import ExitCode, exit_code_of
from kizami.cli.jobs import jobs
from kizami.cli.migrate import migrate
from kizami.cli.mirror import mirror
from kizami.cli.printing import notice
from kizami.cli.run import run
from kizami.cli.sandbox import sandbox
from kizami.cli.schedules import schedules
from kizami.cli.tick import tick
from kizami.core.errors import InvalidInputError, KizamiError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_MAX = 100


def execute(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; a KizamiError is one line on standard error."""
    try:
        _require_text(arguments)
        commands()(list(arguments), prog_name="kizami")
    except SystemExit as ended:
        return _code_of(ended)
    except KizamiError as error:
        said = " ".join([str(error), *getattr(error, "__notes__", ())])
        notice(f"kizami: {' '.join(said.split())}")
        return exit_code_of(error)
    except Exception:  # noqa: BLE001 - the last line of defence: the report of a bug needs its traceback
        notice(f"kizami: this is a bug in Kizami, please report it with what follows.\n{traceback.format_exc()}")
        return ExitCode.BUG
    return ExitCode.OK


def commands() -> typer.Typer:
    """Return the command line."""
    app = typer.Typer(
        help="A durable scheduler: each tick once, at the right local time, mirrored into Slack.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for command in (run, check, tick, migrate, sandbox, mirror, demo):
        app.command()(command)
    app.add_typer(schedules, name="schedules")
    app.add_typer(jobs, name="jobs")
    app.add_typer(deliveries, name="deliveries")
    app.add_typer(boards, name="boards")
    return app


def _require_text(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no UTF-8, which Python hides in strings until something is to be printed or stored."""
    for place, argument in enumerate(arguments, start=1):
        if "\0" in argument or _has_no_encoding(argument):
            message = f"Argument {place}, {argument[:_SHOWN_MAX]!r}, is not UTF-8 text."
            raise InvalidInputError(
                message, remedy="Write it in UTF-8, without NUL characters.", path=f"argument {place}"
            )


def _has_no_encoding(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _code_of(ended: SystemExit) -> int:
    if ended.code is None:
        return ExitCode.OK
    return ended.code if isinstance(ended.code, int) else ExitCode.FAILED
