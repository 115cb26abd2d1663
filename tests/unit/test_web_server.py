from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import httpx
import pytest

from kizami.core.errors import ConfigurationError
from kizami.web.server import serving
from tests.unit.web_site import AUTH, OPERATOR, bearer, open_site


async def test_the_dashboard_answers_as_soon_as_it_is_served_and_not_after(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, httpx.AsyncClient(headers=bearer(OPERATOR)) as client:
        async with serving(site.app, AUTH) as url:
            assert (await client.get(f"{url}/api/schedules")).status_code == 200
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/healthz")


async def test_serving_leaves_signals_to_their_owner(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    async with open_site(tmp_path) as site, serving(site.app, AUTH):
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_a_taken_port_is_refused_with_its_number(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with open_site(tmp_path) as site:
            with pytest.raises(ConfigurationError, match=str(port)):
                async with serving(site.app, AUTH, port=port):
                    pass


async def test_a_request_in_progress_is_answered_before_the_server_stops(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, httpx.AsyncClient(headers=bearer(OPERATOR)) as client:
        async with serving(site.app, AUTH) as url:
            asked = asyncio.create_task(client.post(f"{url}/api/schedules/hourly/pause"))
            while not (await site.app.schedules.get("hourly")).paused_at:
                pass
        assert (await asked).status_code == 200
