"""`kizami sandbox`: a local stand-in for Slack, for development and tests."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Final

import typer

from kizami.cli.extras import needs_extra
from kizami.cli.logs import start_logs
from kizami.cli.numbers import require_within
from kizami.cli.printing import print_line
from kizami.cli.stopping import stop_signals
from kizami.core.tokens import read_token

DEFAULT_PORT: Final = 8901
SCALE_MIN: Final = 0.001
SCALE_MAX: Final = 1_000_000.0


def sandbox(
    host: Annotated[
        str,
        typer.Option(help="The address; one that other machines can reach needs KIZAMI_SANDBOX_TOKEN, a secret."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65_535)] = DEFAULT_PORT,
    time_scale: Annotated[
        float,
        typer.Option(
            help="Sandbox seconds per real second: 60 turns a minute's rate window into one.",
            min=SCALE_MIN,
            max=SCALE_MAX,
        ),
    ] = 1.0,
    no_limits: Annotated[bool, typer.Option("--no-limits", help="Don't count calls against Slack's rates.")] = False,
) -> None:
    """Run a stand-in for Slack on this machine until it is stopped."""
    require_within("--time-scale", time_scale, SCALE_MIN, SCALE_MAX)
    start_logs(as_json=False)
    asyncio.run(_serve(host, port, time_scale, rate_limited=not no_limits))


async def _serve(host: str, port: int, time_scale: float, *, rate_limited: bool) -> None:
    with needs_extra("The sandbox", "web"):
        from kizami.sandbox.guard import VARIABLE  # noqa: PLC0415 - needs the extra
        from kizami.sandbox.server import Sandbox  # noqa: PLC0415 - as above
        from kizami.sandbox.settings import BotSeed, SandboxSettings  # noqa: PLC0415 - as above
    secret = read_token(os.environ, VARIABLE)
    bot = BotSeed() if secret is None else BotSeed(token=secret)
    settings = SandboxSettings(time_scale=time_scale, rate_limited=rate_limited, bots=(bot,), control_token=secret)
    with stop_signals() as stop:
        async with Sandbox(settings).serving(host, port) as url:
            print_line(f"The sandbox is at {url}")
            print_line(f"export SLACK_API_URL={url.rstrip('/')}/api/")
            print_line(f"export SLACK_BOT_TOKEN={bot.token if secret is None else f'${VARIABLE}'}")
            await stop.wait()
