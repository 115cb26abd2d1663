"""`kizami demo`: everything on one machine, for a person to watch, or unattended with a verdict."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import typer

from kizami.cli.exit_codes import ExitCode
from kizami.cli.extras import needs_extra
from kizami.cli.numbers import require_within

SPEED_MIN: Final = 0.1
SPEED_MAX: Final = 100.0
SEED_MAX: Final = 2**63 - 1


def demo(
    *,
    verify: bool = typer.Option(False, "--verify", help="Replay it all unattended with kills and faults; print JSON."),
    seed: int = typer.Option(1, min=0, max=SEED_MAX, help="With --verify: the seed of the kills and faults."),
    lookup: bool = typer.Option(True, "--lookup/--no-lookup", help="Look for a post of unknown fate before repeating."),
    speed: float = typer.Option(1.0, min=SPEED_MIN, max=SPEED_MAX, help="How fast the recorded checks are replayed."),
) -> None:
    """Show a board and notices in a local Slack stand-in, fed with real uptime checks. Needs no Slack token."""
    require_within("--speed", speed, SPEED_MIN, SPEED_MAX)
    if not verify:
        with needs_extra("The demo", "all"):
            from kizami.demo.show import show  # noqa: PLC0415 - needs the web floor and SQLAlchemy
        asyncio.run(show(speed, lookup=lookup, say=typer.echo))
        return
    with needs_extra("The demo", "all"):
        from kizami.demo.verify import verify as run_verify  # noqa: PLC0415 - needs the web floor and SQLAlchemy
    verdict = asyncio.run(run_verify(seed, lookup=lookup))
    typer.echo(json.dumps(verdict.as_json()))
    unmet = verdict.unmet(lookup=lookup)
    for name, said in unmet.items():
        typer.echo(f"kizami: the demand {name} failed: {said}", err=True)
    if unmet:
        raise typer.Exit(ExitCode.FAILED)
