"""`kizami mirror`: a query's rows as a status board in Slack, without a line of Python."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from kizami.cli.durations import parse_duration
from kizami.cli.exit_codes import ExitCode
from kizami.cli.extras import needs_extra
from kizami.cli.logs import start_logs, start_quiet_logs
from kizami.cli.opened import require_lasting
from kizami.cli.printing import notice, print_line
from kizami.cli.run import DEFAULT_PORT, Host, JsonLogs, NoWeb, Port
from kizami.cli.staying import WebAddress, stay
from kizami.core.errors import InvalidInputError


def mirror(
    query: Annotated[str, typer.Option(metavar="SQL", help="The SELECT whose rows are shown.")],
    channel: Annotated[str, typer.Option(help="The id of the Slack channel, as in C0123456789.")],
    cron: Annotated[list[str] | None, typer.Option(help="When, in five fields; may be repeated.")] = None,
    every: Annotated[str | None, typer.Option(help="How often instead: 30s, 5m, 1h or 1d.")] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="SQLAlchemy URL without a password; else KIZAMI_MIRROR_DATABASE_URL is used."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="IANA name, for --cron and the times shown. [default: UTC]")
    ] = None,
    title: Annotated[str, typer.Option(help="The board's title.")] = "Status",
    name: Annotated[
        str | None, typer.Option(help="What tells this mirror from others. [default: from channel and title]")
    ] = None,
    query_limit: Annotated[str, typer.Option(help="How long the query may take before it is ended.")] = "30s",
    once: Annotated[
        bool, typer.Option("--once", help="Mirror once and exit: 0 when the board shows it, else 1.")
    ] = False,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    no_web: NoWeb = False,
    as_json: JsonLogs = False,
) -> None:
    """Show a query's rows in a Slack channel: one message, edited in place at every tick."""
    if not once and bool(cron) == (every is not None):
        raise InvalidInputError("A mirror needs --cron or --every, one of them.", remedy="Or --once.", path="--every")
    with needs_extra("A mirror", "sql,slack"):
        from kizami.cli.mirroring import (  # noqa: PLC0415 - needs the extras
            Mirror,
            MirrorTiming,
            mirror_once,
            say_first_tick,
            switch_on,
        )
        from kizami.cli.query import DATABASE_VARIABLE, Query, read_url  # noqa: PLC0415 - as above
    timing = MirrorTiming(tuple(cron or ()), parse_duration(every, "--every") if every else None, time_zone)
    limit = parse_duration(query_limit, "--query-limit")
    source = Query(read_url(database, os.environ.get(DATABASE_VARIABLE)), query, limit)
    made = Mirror.build(source, channel, title, name, timing, once=once)
    require_lasting(made.app)
    if once:
        start_quiet_logs(as_json=as_json)
        problem = asyncio.run(mirror_once(made))
        if problem is not None:
            notice(f"kizami: {problem}")
            raise typer.Exit(ExitCode.FAILED)
        print_line(f"The board {title} in {channel} is up to date.")
        return
    start_logs(as_json=as_json)
    asyncio.run(switch_on(made))
    asyncio.run(stay(made.app, None if no_web else WebAddress(host, port), lambda: say_first_tick(made)))
