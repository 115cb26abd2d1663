"""The sandbox as a whole: an ASGI application, a server inside your own loop, or a program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount

from kizami.runtime import Runtime, SystemRuntime
from kizami.sandbox.api import SlackApi
from kizami.sandbox.connection import listening
from kizami.sandbox.endpoint import ApiEndpoint
from kizami.sandbox.faults import Faults
from kizami.sandbox.hooks import Hooks
from kizami.sandbox.log import CallLog
from kizami.sandbox.sandbox_time import SandboxTime
from kizami.sandbox.settings import SandboxSettings
from kizami.sandbox.workspace import Workspace


class Sandbox:
    """A local Slack. `app` is its ASGI application; `serving()` puts that on a socket.

    Answers can be lost only over `serving()`, where there is a connection to cut; under another server the call fails.
    """

    def __init__(self, settings: SandboxSettings | None = None, runtime: Runtime | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self.time = SandboxTime((runtime or SystemRuntime()).clock, self.settings.time_scale)
        self.api = SlackApi(self.settings, self.time)
        self.app = Starlette(routes=[Mount("/api", ApiEndpoint(self.api))])
        self.url = self.api.address

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
        """Who wants to stand between a call and its answer."""
        return self.api.hooks

    @property
    def api_url(self) -> str:
        """The `base_url` for a Slack client, while serving."""
        return f"{self.url}/api/"

    @asynccontextmanager
    async def serving(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
        """Serve in the running loop; yields the address when it takes calls, and ends at once."""
        async with listening(self.app, host, port) as url:
            self.url = self.api.address = url
            try:
                yield url
            finally:
                await self.api.stop()
