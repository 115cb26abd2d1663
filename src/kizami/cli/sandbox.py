"""`kizami sandbox`: a local stand-in for Slack, for development and tests."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from kizami.cli.extras import needs_extra
from kizami.cli.logs import start_logs
from kizami.cli.printing import print_line
from kizami.cli.stopping import stop_signals

DEFAULT_PORT: Final = 8901
_HERE: Final = "127.0.0.1"


def sandbox(
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65_535)] = DEFAULT_PORT,
    time_scale: Annotated[
        float,
        typer.Option(help="Sandbox seconds per real second: 60 turns a minute's rate window into one.", min=0.001),
    ] = 1.0,
    no_limits: Annotated[bool, typer.Option("--no-limits", help="Don't count calls against Slack's rates.")] = False,
) -> None:
    """Run a stand-in for Slack on this machine until it is stopped."""
    start_logs(as_json=False)
    asyncio.run(_serve(port, time_scale, rate_limited=not no_limits))


async def _serve(port: int, time_scale: float, *, rate_limited: bool) -> None:
    with needs_extra("The sandbox", "web"):
        from kizami.sandbox.server import Sandbox  # noqa: PLC0415 - needs the extra
        from kizami.sandbox.settings import SandboxSettings  # noqa: PLC0415 - as above
    settings = SandboxSettings(time_scale=time_scale, rate_limited=rate_limited)
    with stop_signals() as stop:
        async with Sandbox(settings).serving(_HERE, port) as url:
            print_line(f"The sandbox is at {url}")
            print_line(f"export SLACK_API_URL={url.rstrip('/')}/api/")
            print_line(f"export SLACK_BOT_TOKEN={settings.bots[0].token}")
            await stop.wait()
