"""A pytest fixture that is a Slack on loopback, in the loop of the test.

Name it in a conftest.py: `pytest_plugins = ["kizami.testing.slack_sandbox"]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


@pytest.fixture
def slack_sandbox_settings() -> SandboxSettings:
    """Return the settings of the sandbox; override this fixture to change them."""
    return SandboxSettings()


@pytest_asyncio.fixture
async def slack_sandbox(
    slack_sandbox_settings: SandboxSettings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sandbox]:
    """Yield a sandbox that takes calls at `.api_url`, with the token `xoxb-sandbox`.

    Proxies are taken out of the environment: a Slack client would send even calls to loopback through them.
    """
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
    sandbox = Sandbox(slack_sandbox_settings)
    async with sandbox.serving():
        yield sandbox
