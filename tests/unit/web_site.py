"""A dashboard in front of a real app on a SQLite file; no worker runs, so nothing moves but what a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from kizami import Kizami
from kizami.core.states import JobState
from kizami.runtime import ProcessIdentity
from kizami.store.protocol import Claim, ClaimedJob, Outcome, Report, Worker
from kizami.web.asgi import build
from kizami.web.auth import Auth, csrf_token_for
from kizami.web.gate import COOKIE
from kizami.web.routes import jobs, mirror, pages, schedules

ORIGIN = "http://kizami.test"
OPERATOR = "operator-" + "o" * 20
VIEWER = "viewer-" + "v" * 20
AUTH = Auth(operator=lambda: OPERATOR, viewer=lambda: VIEWER)
WORKER = "worker-1"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def cookie(token: str) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={token}"}


def browser(token: str, *, csrf: str | None = None) -> dict[str, str]:
    """Return the headers of a write that our own page makes in a browser."""
    given = csrf_token_for(token) if csrf is None else csrf
    return {**cookie(token), "Origin": ORIGIN, "X-CSRF-Token": given}


def routes(*methods: str) -> list[tuple[str, str]]:
    """Return every route of the API and of the pages that takes one of the methods, with its path filled in."""
    api = [("/api", route) for part in (jobs, schedules, mirror) for route in part.router.routes]
    every = [*api, *(("", route) for route in pages.router.routes)]
    return [
        (method, prefix + _filled(route.path))
        for prefix, route in every
        if isinstance(route, APIRoute)
        for method in sorted(route.methods or ())
        if method in methods
    ]


def _filled(path: str) -> str:
    return path.replace("{name}", "hourly").replace("{job_id}", "greet%230:first")


def client(web: ASGIApp, headers: dict[str, str] | None = None, base: str = ORIGIN) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url=base, headers=headers)


@dataclass
class Site:
    """An app, its dashboard, and what a worker would do, step by step."""

    app: Kizami
    web: ASGIApp

    def asking(self, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
        return client(self.web, headers)

    def as_operator(self) -> httpx.AsyncClient:
        return self.asking(bearer(OPERATOR))

    async def enqueue(self, payload: object = None) -> str:
        [job_id] = await self.app.enqueue_many([self.app.performers["greet"].job(payload)])
        return job_id

    async def claim(self) -> ClaimedJob:
        [claimed] = await self.app.store.jobs.claim(Claim(self.app.name, WORKER, ("greet",), limit=1))
        return claimed

    async def complete(self, result: str) -> None:
        await self._report(JobState.COMPLETED, Outcome.COMPLETED, result=result)

    async def fail(self, error: str) -> None:
        await self._report(JobState.FAILED, Outcome.FAILED, error=error)

    async def _report(
        self, state: JobState, outcome: Outcome, *, result: str | None = None, error: str | None = None
    ) -> None:
        claimed = await self.claim()
        report = Report(claimed.key, claimed.claim, state, outcome, result=result, error=error)
        assert await self.app.store.jobs.report([report]) == (True,)


def greeting_app(path: Path) -> Kizami:
    app = Kizami("demo", database_url=f"sqlite:///{path}")

    @app.performer
    def greet(payload: Any) -> None:
        raise AssertionError(f"no worker runs here, yet {payload!r} was performed")

    app.schedule("hourly", greet, payload={}, cron="0 * * * *", time_zone="Asia/Tokyo")
    app.schedule("nightly", greet, payload={}, every=timedelta(days=1), lease="night")
    return app


async def register(app: Kizami, worker_id: str = WORKER, host: str = "somewhere") -> None:
    """Do what a worker does when it starts."""
    process = ProcessIdentity(host, "boot", "namespace", 1, "started")
    await app.store.workers.register(Worker(worker_id, app.name, process, ("greet",)))
    await app.store.schedules.register(
        app.name, [entry.scheduled().definition for entry in app.definitions], worker_id=worker_id
    )


@asynccontextmanager
async def open_site(folder: Path, auth: Auth | None = AUTH) -> AsyncIterator[Site]:
    app = greeting_app(folder / "web.db")
    await app.open()
    try:
        await register(app)
        yield Site(app, build(app, auth))
    finally:
        await app.close()
