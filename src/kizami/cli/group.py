"""Commands under a common word, such as `kizami schedules list`; a forgotten one is proposed."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """Says what was probably meant where an app stands in the place of a command."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; end with usage's exit code for an app's place."""
        found = super().get_command(ctx, cmd_name)
        if found is None and ":" in cmd_name:
            ctx.fail(f"'{cmd_name}' is an app, not a command. Did you mean `{ctx.command_path} list {cmd_name}`?")
        return found
