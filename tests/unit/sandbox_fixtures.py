"""Fixtures: a sandbox under a clock that the test moves, and the real Slack client in front of it.

A test file names this module in `pytest_plugins`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.runtime import SystemRuntime
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from tests.unit.sandbox_slack import TOKEN, HandClock


@pytest.fixture
def sandbox_settings() -> SandboxSettings:
    """Override this, directly or by parametrizing, for another sandbox."""
    return SandboxSettings(rate_limited=False)


@pytest.fixture
def sandbox_clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def sandbox(
    sandbox_settings: SandboxSettings, sandbox_clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sandbox]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SKIP_SLACK_SDK_WARNING", "1")
    sandbox = Sandbox(sandbox_settings, SystemRuntime(clock=sandbox_clock))
    async with sandbox.serving():
        yield sandbox


@pytest.fixture
def slack(sandbox: Sandbox) -> AsyncWebClient:
    return AsyncWebClient(TOKEN, base_url=sandbox.api_url, retry_handlers=[])
