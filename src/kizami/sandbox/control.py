"""The controls under /sandbox/: the log, the faults and the channels, as JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import wraps
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, validate_call
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kizami.core.errors import InvalidInputError
from kizami.sandbox.api import SlackApi
from kizami.sandbox.faults import FAULTS, Fault, FaultMix
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.settings import ChannelSeed
from kizami.sandbox.workspace import Channel, Message

_ENTRIES_MAX = 10_000
_DIGITS_MAX = 18
_CHANNEL_SEED = TypeAdapter(ChannelSeed)
Handler = Callable[[Request], Awaitable[object]]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Chance(BaseModel):
    model_config = ConfigDict(extra="allow")
    probability: float
    fault: str


class _Mix(_Body):
    seed: int = 0
    methods: frozenset[str] = frozenset({"chat.postMessage", "chat.update"})
    chances: list[_Chance]


class _FaultPlan(_Body):
    method: str | None = None
    channel: str | None = None
    faults: list[dict[str, Any]] = []
    mix: _Mix | None = None


class _Words(_Body):
    text: str


class Control:
    """Answers the requests under /sandbox/."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api

    def routes(self) -> list[Route]:
        """Return the routes, relative to /sandbox."""
        messages = "/channels/{channel}/messages"
        return [
            Route("/log", _json(self._log)),
            Route("/faults", _json(self._faults)),
            Route("/faults", _json(self._plan_faults), methods=["POST"]),
            Route("/faults", _json(self._clear_faults), methods=["DELETE"]),
            Route("/channels", _json(self._channels)),
            Route("/channels", _json(self._add_channel), methods=["POST"]),
            Route(messages, _json(self._messages)),
            Route(messages, _json(self._say), methods=["POST"]),
            Route(messages + "/{ts}", _json(self._delete), methods=["DELETE"]),
            Route("/reset", _json(self._reset), methods=["POST"]),
        ]

    async def _log(self, request: Request) -> object:
        query = request.query_params
        after, limit = _number("after", query.get("after"), 0), _number("limit", query.get("limit"), 1_000)
        found = self._api.log.calls(query.get("method"), query.get("channel"))
        entries = [asdict(entry) for entry in found if entry.seq > after][: min(limit, _ENTRIES_MAX)]
        return {"entries": entries, "last_seq": self._api.log.last_seq}

    async def _faults(self, request: Request) -> object:
        del request
        mix = self._api.faults.mix
        queued = [
            {"method": method, "channel": channel, "faults": [fault.name for fault in faults]}
            for (method, channel), faults in self._api.faults.waiting().items()
        ]
        chances = [] if mix is None else [{"probability": p, "fault": fault.name} for p, fault in mix.chances]
        return {"queued": queued, "mix": mix and {"seed": mix.seed, "chances": chances}, "known": sorted(FAULTS)}

    async def _plan_faults(self, request: Request) -> object:
        plan = _FaultPlan.model_validate_json(await request.body())
        faults = [_fault(entry) for entry in plan.faults]
        if faults and plan.method is None:
            raise InvalidInputError("Faults are queued for one method.", remedy="Name it in `method`.", path="method")
        if plan.method is not None:
            self._api.faults.fail_next(plan.method, *faults, channel=plan.channel)
        if plan.mix is not None:
            chances = [(chance.probability, _fault(_arguments(chance))) for chance in plan.mix.chances]
            self._api.faults.mix = FaultMix(plan.mix.seed, chances, plan.mix.methods)
        return await self._faults(request)

    async def _clear_faults(self, request: Request) -> object:
        self._api.faults.clear()
        return await self._faults(request)

    async def _channels(self, request: Request) -> object:
        del request
        return {"channels": [_shown_channel(channel) for channel in self._api.workspace.channels.values()]}

    async def _add_channel(self, request: Request) -> object:
        return _shown_channel(self._api.workspace.add_channel(_CHANNEL_SEED.validate_json(await request.body())))

    async def _messages(self, request: Request) -> object:
        found = self._api.workspace.messages(request.path_params["channel"])
        return {"messages": [_shown_message(message) for message in found]}

    async def _say(self, request: Request) -> object:
        words = _Words.model_validate_json(await request.body())
        return _shown_message(self._api.say(request.path_params["channel"], words.text))

    async def _delete(self, request: Request) -> object:
        return _shown_message(self._api.workspace.delete(request.path_params["channel"], request.path_params["ts"]))

    async def _reset(self, request: Request) -> object:
        await self._api.reset()
        return await self._channels(request)


def _json(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Turn what a handler returns or raises into a JSON answer."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return _response(200, await handler(request))
        except ValidationError as invalid:
            reasons = [f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in invalid.errors()]
            return _response(400, {"error": "invalid_input", "message": "; ".join(reasons)})
        except InvalidInputError as invalid:
            return _response(400, {"error": invalid.code, "message": str(invalid)})
        except RefusedError as refused:
            return _response(404, {"error": refused.error, "message": str(refused)})

    return answer


def _response(status: int, body: object) -> Response:
    return Response(json.dumps(body), status, {"cache-control": "no-store"}, "application/json")


def _fault(entry: Mapping[str, Any]) -> Fault:
    name = entry.get("fault")
    if not isinstance(name, str) or name not in FAULTS:
        known = ", ".join(sorted(FAULTS))
        raise InvalidInputError(f"No fault is called {name!r}.", remedy=f"Known ones: {known}.", path="fault")
    return validate_call(FAULTS[name])(**{key: value for key, value in entry.items() if key != "fault"})


def _arguments(chance: _Chance) -> dict[str, Any]:
    return {"fault": chance.fault, **(chance.model_extra or {})}


def _number(name: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise InvalidInputError(f"{name} is {text[:100]!r}.", remedy="Give a whole number from 0 on.", path=name)
    return int(text)


def _shown_channel(channel: Channel) -> dict[str, object]:
    return {
        "id": channel.id,
        "name": channel.name,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "members": sorted(channel.members),
        "messages": len(channel.messages),
    }


def _shown_message(message: Message) -> dict[str, object]:
    return {
        "channel": message.channel,
        "ts": message.ts,
        "author": message.bot.name,
        "text": message.content.text,
        "blocks": list(message.content.blocks),
        "metadata": message.content.metadata,
        "thread_ts": message.thread_ts,
        "edits": message.edits,
    }
