"""Carries out one call of the Slack API from its request to its answer, or to the end of its connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from kizami.sandbox.arguments import Arguments, Decoded, Request, decode
from kizami.sandbox.callers import Caller, Result
from kizami.sandbox.content import ContentReader
from kizami.sandbox.faults import Acceptance, Ending, Fault, Faults
from kizami.sandbox.hooks import Call, Hooks, Phase
from kizami.sandbox.log import OK, CallLog, Entry, digest
from kizami.sandbox.methods import METHODS, Method
from kizami.sandbox.rate_limits import RateLimiter
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.sandbox_time import SandboxTime
from kizami.sandbox.settings import SandboxSettings, TokenState
from kizami.sandbox.workspace import PERSON, Bot, Content, Message, Workspace

_NO_FAULT = Fault("none")
_NOT_ACCEPTED = "not_accepted"
_DROPPED = "dropped"
_MS_PER_SECOND = 1_000
_JSON = "application/json; charset=utf-8"
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer to send."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    entry: Entry


@dataclass(frozen=True, slots=True)
class Silence:
    """The connection ends without an answer: closed, or reset."""

    is_reset: bool


class SlackApi:
    """The methods of one workspace, with its limits and its faults."""

    def __init__(self, settings: SandboxSettings, time: SandboxTime) -> None:
        self.workspace = Workspace(settings)
        self.log = CallLog(settings.entries_kept, settings.log_file)
        self.faults = Faults()
        self.hooks = Hooks()
        self.limiter = RateLimiter(settings)
        self.address = "http://sandbox.invalid"
        self._settings = settings
        self._time = time
        self._reader = ContentReader(settings.limits)
        self._late: set[asyncio.Task[None]] = set()

    async def handle(self, name: str, request: Request) -> Answer | Silence:
        """Carry out a call of the method `name`."""
        try:
            method = _find(name)
            decoded = _decode(request, method)
            call = Call(name, self._channel_of(decoded), decoded.arguments, self._bot(decoded), decoded.warnings)
        except RefusedError as refused:
            return self._answer(refused.answer(), self._note_unread(name, refused))
        await self.hooks.reach(Phase.RECEIVED, call)
        if call.is_dropped:
            self._note(call, _DROPPED)
            return Silence(is_reset=False)
        if wait_ms := self.limiter.admit(call.bot.app_id, name, method.rate, call.channel, self._time.elapsed_ms()):
            return self._too_early(call, wait_ms)
        fault = self.faults.take(name, call.channel) or _NO_FAULT
        return await self._carry_out(call, method, fault)

    async def settle_late(self) -> None:
        """Wait until everything that is to be accepted late has been."""
        await asyncio.gather(*self._late)

    def say(self, channel_id: str, text: str) -> Message:
        """Let a person write in a channel."""
        channel = self.workspace.channel(channel_id)
        draft = Message(channel.id, "", PERSON, Content(text), self._time.elapsed_ms())
        return self.workspace.post(channel, draft, self._time.wall_ms())

    async def reset(self) -> None:
        """Empty the channels and the log, and forget faults, rates and what is to be accepted late; hooks stay."""
        await self.stop()
        self.workspace.reset()
        self.log.clear()
        self.faults.clear()
        self.limiter = RateLimiter(self._settings)

    async def stop(self) -> None:
        """Give up what is to be accepted late."""
        tasks = tuple(self._late)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_out(self, call: Call, method: Method, fault: Fault) -> Answer | Silence:
        body: Mapping[str, Any] = {}
        match fault.acceptance:
            case Acceptance.AT_ONCE:
                body = self._apply(call, method, fault)
            case Acceptance.NEVER:
                self._note_fault(call, fault)
                self._close_gate(call, method, fault)
            case Acceptance.LATE:
                self._accept_later(call, method, fault, self._note_fault(call, fault).seq)
        if call.entry is not None and call.entry.effect is not None:
            await self.hooks.reach(Phase.ACCEPTED, call)
        if fault.hold_s:
            await self._time.hold(fault.hold_s)
        if call.is_dropped or fault.ending is not Ending.ANSWER or call.entry is None:
            return Silence(is_reset=fault.ending is Ending.RESET)
        return self._answer(body, call.entry, fault, call.bot)

    def _apply(self, call: Call, method: Method, fault: Fault, late: int | None = None) -> dict[str, Any]:
        """Do what the call asks for, log it, and return the answer; a `late` one came with that entry."""
        try:
            result = method.run(self._caller(call.bot), call.arguments)
        except RefusedError as refused:
            self._note(call, refused.error, fault, late=late)
            return refused.answer()
        self._note(call, OK, fault, result, late=late)
        warnings = (*call.warnings, *result.warnings, *((fault.warning,) if fault.warning else ()))
        return Result(result.answer, warnings).body()

    def _accept_later(self, call: Call, method: Method, fault: Fault, came: int) -> None:
        async def accept() -> None:
            await self._time.hold(fault.late_s)
            self._apply(call, method, fault, late=came)

        task = asyncio.create_task(accept(), name=f"accept {call.method} late")
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def _close_gate(self, call: Call, method: Method, fault: Fault) -> None:
        if fault.gate_s:
            until_ms = self._time.elapsed_ms() + fault.gate_s * _MS_PER_SECOND
            self.limiter.close(call.bot.app_id, call.method, method.rate, call.channel, until_ms)

    def _too_early(self, call: Call, wait_ms: float) -> Answer:
        fault = Fault.rate_limited(wait_ms / _MS_PER_SECOND)
        entry = self._note(call, "ratelimited")
        return self._answer({}, entry, fault, call.bot)

    def _answer(
        self, body: Mapping[str, Any], entry: Entry, fault: Fault = _NO_FAULT, bot: Bot | None = None
    ) -> Answer:
        said = fault.body if fault.body is not None else body
        if fault.without_ts and isinstance(said, Mapping):
            said = {name: value for name, value in said.items() if name not in {"ts", "message"}}
        content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        date = format_datetime(datetime.fromtimestamp(self._time.wall_ms() // _MS_PER_SECOND, UTC), usegmt=True)
        headers = {"content-type": _HTML if content.startswith(b"<") else _JSON, "date": date}
        if bot is not None:
            headers["x-oauth-scopes"] = ",".join(sorted(bot.scopes))
        if fault.retry_after is not None:
            headers["retry-after"] = self._retry_after(fault.retry_after)
        return Answer(fault.status or 200, headers, content, entry)

    def _retry_after(self, wait: str | float) -> str:
        return wait if isinstance(wait, str) else str(self._time.whole_real_seconds(wait * _MS_PER_SECOND))

    def _caller(self, bot: Bot) -> Caller:
        now, elapsed = self._time.wall_ms(), self._time.elapsed_ms()
        return Caller(bot, self.workspace, self._reader, self._settings, now, elapsed, self.address)

    def _bot(self, decoded: Decoded) -> Bot:
        if not decoded.token:
            raise RefusedError("not_authed")
        bot = self.workspace.bots.get(decoded.token)
        if bot is None:
            raise RefusedError("invalid_auth")
        if bot.state is not TokenState.ACTIVE:
            raise RefusedError(bot.state.value)
        return bot

    def _channel_of(self, decoded: Decoded) -> str:
        """Return the id of the channel that a call is about, as far as its arguments tell."""
        name = decoded.arguments.values.get("channel")
        named = self.workspace.named(name) if isinstance(name, str) else None
        return named.id if named else str(name or "")

    def _note_fault(self, call: Call, fault: Fault) -> Entry:
        body = fault.body if isinstance(fault.body, Mapping) else {}
        return self._note(call, str(body.get("error", _NOT_ACCEPTED)), fault)

    def _note(
        self, call: Call, outcome: str, fault: Fault = _NO_FAULT, result: Result | None = None, late: int | None = None
    ) -> Entry:
        message = None if result is None else result.message
        call.entry = self.log.append(
            at=self._time.wall_ms(),
            method=call.method,
            channel=message.channel if message else call.channel,
            outcome=outcome,
            effect=result.effect if result else None,
            ts=message.ts if message else _text(call.arguments, "ts"),
            text=message.content.text if message else _text(call.arguments, "text"),
            blocks_digest=digest(message.content.blocks) if message else None,
            metadata=message.content.metadata if message else None,
            token=call.bot.token,
            fault=None if fault is _NO_FAULT else fault.name,
            late=late is not None,
            call=late,
            span=result.span if result else None,
        )
        return call.entry

    def _note_unread(self, method: str, refused: RefusedError) -> Entry:
        """Log a call that was refused before its arguments were looked at."""
        return self._note(Call(method[:80], "", Arguments({}), PERSON), refused.error)


def _find(name: str) -> Method:
    try:
        return METHODS[name]
    except KeyError:
        raise RefusedError("unknown_method", req_method=name[:80]) from None


def _decode(request: Request, method: Method) -> Decoded:
    if request.verb != "POST" and not (request.verb == "GET" and method.takes_get):
        raise RefusedError("invalid_post_type")
    return decode(request, takes_json=method.takes_json)


def _text(arguments: Arguments, name: str) -> str | None:
    value = arguments.values.get(name)
    return value if isinstance(value, str) else None
