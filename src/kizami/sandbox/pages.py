"""The pages that show what the sandbox holds, rendered on the server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from kizami.core.errors import ConfigurationError
from kizami.sandbox.api import SlackApi
from kizami.sandbox.faults import FAULTS
from kizami.sandbox.markup import link, mrkdwn, plain
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.sandbox_time import SandboxTime
from kizami.sandbox.settings import SandboxSettings

_MESSAGES_SHOWN = 100
_CALLS_SHOWN = 200
_MS_PER_SECOND = 1_000


class Pages:
    """Answers the requests of a browser."""

    def __init__(self, api: SlackApi, settings: SandboxSettings, time: SandboxTime) -> None:
        self._api = api
        self._time = time
        self._settings = settings
        self._zone = _zone(settings.time_zone)
        self._templates = Environment(loader=PackageLoader("kizami.sandbox"), autoescape=True, trim_blocks=True)
        self._templates.filters |= {
            "mrkdwn": mrkdwn,
            "plain": plain,
            "clock": lambda at_ms: f"{self._moment(at_ms):%Y-%m-%d %H:%M:%S}",
            "counted": lambda count, noun: f"{count} {noun}{'' if count == 1 else 's'}",
            "iso": lambda at_ms: self._moment(at_ms).isoformat(),
            "link": link,
            "milliseconds": _milliseconds,
            "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
            "zoned": self._zoned,
        }

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all pages and of what they load."""
        return [
            Route("/", self._home),
            Route("/calls", self._calls),
            Route("/channels/{channel}", self._channel),
            Route("/archives/{channel}/p{digits}", self._permalink),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ]

    async def _home(self, request: Request) -> Response:
        return self._page(request, "home.html", {"bots": list(self._api.workspace.bots.values())})

    async def _channel(self, request: Request) -> Response:
        try:
            channel = self._api.workspace.channel(request.path_params["channel"])
        except RefusedError:
            return PlainTextResponse("There is no such channel.", 404)
        before = request.query_params.get("before", "")
        older = (m for m in reversed(channel.messages.values()) if not before or m.ts < before)
        found = list(islice(older, _MESSAGES_SHOWN + 1))
        shown = found[:_MESSAGES_SHOWN][::-1]
        has_older = len(found) > _MESSAGES_SHOWN
        return self._page(request, "channel.html", {"channel": channel, "messages": shown, "has_older": has_older})

    async def _calls(self, request: Request) -> Response:
        calls = list(islice(reversed(self._api.log.entries), _CALLS_SHOWN))
        waiting = self._api.faults.waiting().items()
        context = {"calls": calls, "waiting": list(waiting), "mix": self._api.faults.mix, "known": sorted(FAULTS)}
        return self._page(request, "calls.html", context)

    async def _permalink(self, request: Request) -> Response:
        channel, digits = (quote(request.path_params[name]) for name in ("channel", "digits"))
        return RedirectResponse(f"/channels/{channel}#p{digits}")

    def _page(self, request: Request, name: str, context: Mapping[str, Any]) -> Response:
        """Render a page, or answer that it is still the one the browser has."""
        shared = {
            "team": self._settings.team,
            "address": self._api.address,
            "zone": f"{self._settings.time_zone} ({self._offset(self._time.wall_ms())})",
            "channels": list(self._api.workspace.channels.values()),
            "calls_total": self._api.log.last_seq,
            "here": request.url.path,
        }
        body = self._templates.get_template(name).render({**shared, **context}).encode("utf-8", "replace")
        tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, 200, headers, "text/html")

    def _moment(self, at_ms: int) -> datetime:
        return datetime.fromtimestamp(at_ms / _MS_PER_SECOND, self._zone)

    def _zoned(self, at_ms: int) -> str:
        return f"{self._moment(at_ms):%Y-%m-%d %H:%M:%S} {self._settings.time_zone} ({self._offset(at_ms)})"

    def _offset(self, at_ms: int) -> str:
        """Return the offset in force at that instant, as in GMT+09:00."""
        offset = f"{self._moment(at_ms):%z}"
        return f"GMT{offset[:3]}:{offset[3:5]}"


def _milliseconds(ts: str) -> int:
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * _MS_PER_SECOND + int(fraction[:3])


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigurationError(
            f"SandboxSettings.time_zone is {name!r}, which is no IANA time zone.", remedy="Use one like Asia/Tokyo."
        ) from error
