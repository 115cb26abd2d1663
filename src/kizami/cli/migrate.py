"""`kizami migrate`: brings a database's schema up to date, before new code starts on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from kizami.app.app import DATABASE_URL, DEFAULT_URL
from kizami.cli.exit_codes import ExitCode
from kizami.cli.loading import load_app
from kizami.cli.printing import AsJson, print_json, print_line
from kizami.runtime import SystemRuntime
from kizami.store.opening import migrations_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.opening import Migrations, Step

_Place = Annotated[
    str | None,
    typer.Argument(metavar="[MODULE:APP]", help=f"An app that names its own database; else {DATABASE_URL} does."),
]
_Check = Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when something is missing.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; print the SQL that would run.")]


def migrate(place: _Place = None, check: _Check = False, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    """Bring the database's schema up to date. Old code goes on working meanwhile and afterwards."""
    found = migrations_of(_url_of(place), SystemRuntime())
    changing = not (check or dry_run)
    steps = found.apply() if changing else found.pending()
    if as_json:
        print_json(_as_json(found, steps, applied=changing))
    elif dry_run:
        for step in steps:
            print_line(f"-- {step.number} {step.name}\n{step.sql}")
    else:
        _tell(found, steps, applied=changing)
    if check and steps:
        raise typer.Exit(ExitCode.FAILED)


def _url_of(place: str | None) -> str:
    if place is not None:
        return load_app(place).database_url
    return os.environ.get(DATABASE_URL) or DEFAULT_URL


def _tell(found: Migrations, steps: Sequence[Step], *, applied: bool) -> None:
    for step in steps:
        print_line(f"{step.number} {step.name}: {'applied' if applied else 'missing'}")
    print_line(f"The database {found.shown} {'is up to date' if applied or not steps else 'is not up to date'}.")
    if found.by_itself:
        print_line("A SQLite file migrates by itself when a process opens it.")


def _as_json(found: Migrations, steps: Sequence[Step], *, applied: bool) -> dict[str, object]:
    listed = [{"number": step.number, "name": step.name} for step in steps]
    return {
        "database": found.shown,
        "migrates_by_itself": found.by_itself,
        "applied": listed if applied else [],
        "missing": [] if applied else listed,
    }
