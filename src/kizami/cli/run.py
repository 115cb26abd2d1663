"""`kizami run`: an app's worker and its pages in one process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

import typer

from kizami.cli.loading import AppPlace, load_app
from kizami.cli.logs import start_logs
from kizami.cli.staying import WebAddress, stay

Host = Annotated[str, typer.Option(help="The address that the pages listen on.")]
Port = Annotated[int, typer.Option(help="The port of the pages; 0 takes a free one.", min=0, max=65_535)]
NoWeb = Annotated[bool, typer.Option("--no-web", help="Run the worker only.")]
JsonLogs = Annotated[bool, typer.Option("--json", help="Write the log as JSON lines.")]
DEFAULT_PORT = 8080


def run(
    place: AppPlace,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    no_web: NoWeb = False,
    concurrency: Annotated[int | None, typer.Option(help="How many jobs run at once.", min=1, max=10_000)] = None,
    as_json: JsonLogs = False,
) -> None:
    """Run an app: fire its schedules, perform its jobs, serve its pages. SIGTERM and SIGINT stop it gracefully."""
    start_logs(as_json=as_json)
    app = load_app(place)
    if concurrency is not None:
        app.settings = replace(app.settings, concurrency=concurrency)
    asyncio.run(stay(app, None if no_web else WebAddress(host, port)))
