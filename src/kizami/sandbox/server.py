"""The sandbox as a whole: an ASGI application, a server inside your own loop, or a program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount

from kizami.runtime import Runtime, SystemRuntime
from kizami.sandbox.api import SlackApi
from kizami.sandbox.connection import listening
from kizami.sandbox.control import Control
from kizami.sandbox.endpoint import ApiEndpoint
from kizami.sandbox.faults import Faults
from kizami.sandbox.guard import ControlGuard, PageGuard, SecurityHeaders, require_private
from kizami.sandbox.hooks import Hooks
from kizami.sandbox.log import CallLog
from kizami.sandbox.pages import Pages
from kizami.sandbox.sandbox_time import SandboxTime
from kizami.sandbox.settings import SandboxSettings
from kizami.sandbox.workspace import Message, Workspace


class Sandbox:
    """A local Slack. `app` is its ASGI application; `serving()` puts that on a socket.

    Answers can be lost only over `serving()`, where there is a connection to cut; elsewhere such a call raises.
    """

    def __init__(self, settings: SandboxSettings | None = None, runtime: Runtime | None = None) -> None:
        self.settings = settings or SandboxSettings()
        time = SandboxTime((runtime or SystemRuntime()).clock, self.settings.time_scale)
        self.api = SlackApi(self.settings, time)
        control = Starlette(routes=Control(self.api).routes())
        pages = Starlette(routes=Pages(self.api, self.settings, time).routes())
        self.app = Starlette(
            routes=[
                Mount("/api", ApiEndpoint(self.api)),
                Mount("/sandbox", ControlGuard(control, self.settings.control_token)),
                Mount("/", PageGuard(pages, self.settings.control_token)),
            ],
            middleware=[Middleware(SecurityHeaders)],
        )

    @property
    def workspace(self) -> Workspace:
        """Its channels, messages and bots."""
        return self.api.workspace

    @property
    def log(self) -> CallLog:
        """The ground truth: what it accepted, and all else that it was asked."""
        return self.api.log

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self.api.faults

    @property
    def hooks(self) -> Hooks:
        """Who stands between a call and its answer."""
        return self.api.hooks

    @property
    def url(self) -> str:
        """Where it serves."""
        return self.api.address

    @property
    def api_url(self) -> str:
        """The `base_url` for a Slack client."""
        return f"{self.url}/api/"

    def say(self, channel: str, text: str) -> Message:
        """Let a person write in a channel, by its id."""
        return self.api.say(channel, text)

    async def settle_late(self) -> None:
        """Wait until everything that is to be accepted late has been."""
        await self.api.settle_late()

    async def reset(self) -> None:
        """Empty the channels and the log, and forget faults and rates; hooks stay."""
        await self.api.reset()

    @asynccontextmanager
    async def serving(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
        """Serve in the running loop; yields the address when it takes calls, and ends at once.

        What was posted stays, so that serving again at the same port is Slack come back. Raises ConfigurationError if
        the address can't be had, and for one that others can reach unless only who has a secret is answered there.
        """
        require_private(host, self.settings)
        async with listening(self.app, host, port) as url:
            self.api.address = url
            try:
                yield url
            finally:
                await self.api.stop()


def run_sandbox(
    settings: SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 8901,
    *,
    on_ready: Callable[[Sandbox], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` is called once, when calls are taken.

    Raises ConfigurationError as `Sandbox.serving` does.
    """
    asyncio.run(_run(Sandbox(settings), host, port, on_ready))


async def _run(sandbox: Sandbox, host: str, port: int, on_ready: Callable[[Sandbox], None] | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt there
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with sandbox.serving(host, port):
        if on_ready is not None:
            on_ready(sandbox)
        await stopped.wait()
