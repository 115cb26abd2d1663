"""The demo's worker process: `python -m kizami.demo.worker FOLDER --every MS [--no-lookup] [--phases] [--port N]`.

It loads everything and waits for a line, which says that it is its turn. With `--phases` it says each phase of a post
on standard output and goes on only when it gets a line back, so that a supervisor can kill it exactly there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kizami.demo.mirror import make_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kizami.app.app import Kizami


async def say_phase(phase: str, item: str) -> None:
    """Say where the mirror is, and wait for the word to go on."""
    sys.stdout.write(f"{phase} {item}\n")
    sys.stdout.flush()
    if not await asyncio.to_thread(sys.stdin.readline):
        signal.raise_signal(signal.SIGTERM)  # the supervisor is gone


async def work(app: Kizami, options: argparse.Namespace) -> None:
    """Run the app until SIGTERM, or until its supervisor is gone."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    if not options.phases:
        _stop_at_end_of_input(loop, stop)
    async with app.running(), _pages(app, options.port):
        await stop.wait()


def _stop_at_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when the supervisor's end of standard input closes: a worker that outlived its demo would keep the port."""

    def end() -> None:
        loop.remove_reader(sys.stdin)
        stop.set()

    loop.add_reader(sys.stdin, end)


@contextlib.asynccontextmanager
async def _pages(app: Kizami, port: int | None) -> AsyncIterator[None]:
    if port is None:
        yield
        return
    from kizami.web.auth import Auth  # noqa: PLC0415 - only the demo with pages loads the web floor
    from kizami.web.server import serving  # noqa: PLC0415 - as above

    async with serving(app, Auth.from_environment(), port=port):
        yield


def main() -> None:
    """Read the options and work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the supervisor says when to stop
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=2_000)
    parser.add_argument("--no-lookup", action="store_true")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--port", type=int)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    options = parser.parse_args()
    app = make_app(
        options.folder,
        every=timedelta(milliseconds=options.every),
        lookup=not options.no_lookup,
        on_phase=say_phase if options.phases else None,
    )
    if sys.stdin.readline():
        asyncio.run(work(app, options))


if __name__ == "__main__":
    main()
