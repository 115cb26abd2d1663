"""`kizami check`: whether an app's code loads, and its schedules keep their posting windows."""

from __future__ import annotations

import typer

from kizami.cli.exit_codes import ExitCode
from kizami.cli.loading import AppPlace, load_app
from kizami.cli.printing import AsJson, print_json, print_line


def check(place: AppPlace, as_json: AsJson = False) -> None:
    """Check every tick from now on against its schedule's posting window. Exit 1: findings; 2: nothing to check."""
    app = load_app(place)
    app.check()  # raises when no schedule has a window
    now = app.runtime.clock.now_ms()
    windowed = [entry for entry in app.definitions if entry.window is not None]
    found = [(entry.name, finding) for entry in windowed for finding in entry.findings(now)]
    if as_json:
        findings = [{"schedule": name, "message": finding.message, "at": finding.at_ms} for name, finding in found]
        print_json({"app": app.name, "checked": [entry.name for entry in windowed], "findings": findings})
    else:
        for name, finding in found:
            print_line(f"{name}: {finding.message}")
        print_line(_summary(len(app.definitions), len(windowed), len(found)))
    if found:
        raise typer.Exit(ExitCode.FAILED)


def _summary(defined: int, windowed: int, found: int) -> str:
    return f"Posting windows checked: {windowed} of {defined} schedules; {found or 'no'} findings."
