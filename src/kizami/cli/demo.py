"""`kizami demo`: loaded when it is asked for, so that no other command pays for it."""

from __future__ import annotations

from typing import Final

import typer

from kizami.cli.extras import needs_extra

ITS_OWN_OPTIONS: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def demo(context: typer.Context) -> None:
    """Show everything at work on this machine: an app, a board, the pages and a stand-in for Slack."""
    with needs_extra("The demo", "all"):
        from kizami.demo.command import demo as real  # noqa: PLC0415 - needs every extra
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    command.command()(real)
    command(context.args, prog_name="kizami demo")
