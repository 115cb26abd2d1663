"""Slack's client and the sandbox without a socket between them: where time is virtual, nothing may come over a wire."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.api import Silence
from kizami.sandbox.arguments import Request
from kizami.sandbox.server import Sandbox
from kizami.slack import Slack

TOKEN = "xoxb-sandbox"  # noqa: S105 - a stand-in's token opens nothing


class _Client(AsyncWebClient):
    """The SDK's own client, whose requests go to the sandbox in this process."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(TOKEN, retry_handlers=[])
        self._sandbox = sandbox

    async def _request(self, *, http_verb: str, api_url: str, req_args: dict[str, Any]) -> dict[str, Any]:
        headers = {name.lower(): value for name, value in req_args["headers"].items()}
        sent = req_args.get("json")
        body = b"" if sent is None else json.dumps(sent).encode()
        headers["content-type"] = "application/x-www-form-urlencoded" if sent is None else "application/json"
        request = Request(http_verb, headers, urlencode(req_args.get("params") or {}), body)
        answer = await self._sandbox.api.handle(api_url.rpartition("/")[2], request)
        if isinstance(answer, Silence):
            raise aiohttp.ServerDisconnectedError
        return {"data": json.loads(answer.body), "headers": answer.headers, "status_code": answer.status}


class InProcessSlack(Slack):
    """The mirror's way to Slack over such a client."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(TOKEN)
        self._to_sandbox = _Client(sandbox)

    def sdk(self) -> AsyncWebClient:
        return self._to_sandbox
