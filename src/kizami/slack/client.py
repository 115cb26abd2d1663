"""The one way to call Slack: slack_sdk with its own retries off, under a call policy and behind shared gates."""

from __future__ import annotations

import logging
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kizami.core.errors import ConfigurationError
from kizami.engine.context import current_or_none
from kizami.runtime import SystemClock
from kizami.slack.answers import header, read_answer, read_failure
from kizami.slack.errors import ApiError, NotSent, RateLimited, ServerError, SlackError, Unclear
from kizami.slack.identity import Identity
from kizami.slack.policy import LOOK_UP, CallPolicy, backoff_ms
from kizami.slack.slack_time import SlackTime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from slack_sdk.web.async_client import AsyncWebClient

    from kizami.core.times import EpochMs
    from kizami.runtime import Clock

log = logging.getLogger("kizami.slack")

SLACK_API: Final = "https://slack.com/api/"
POST: Final = "chat.postMessage"
TIMEOUT_S: Final = 30
TIMEOUT_S_MAX: Final = 60
"""A post's claim has to outlast its call with all retries."""

_READS: Final = frozenset({"conversations.history", "conversations.replies", "conversations.info", "chat.getPermalink"})
_STAND_IN_TOKEN: Final = "xoxb-sandbox"  # noqa: S105 - opens nothing but a stand-in on this machine
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_LONG_WAIT_MS: Final = 600_000


class Slack:
    """A Slack workspace as a bot sees it.

    The token comes from SLACK_BOT_TOKEN, the address from SLACK_API_URL (set it to use a stand-in; on this machine
    it needs no token). `on_phase` is told (phase, item) at "before_send", "answered" and "between_items". `outcomes`
    counts calls by (method, outcome). `timeout_s` is that of one try, 60 at most. Raises ConfigurationError without a
    token.
    """

    def __init__(self, token: str | None = None, api_url: str | None = None, *, timeout_s: int = TIMEOUT_S) -> None:
        self.api_url = _api_url(api_url or os.environ.get("SLACK_API_URL") or SLACK_API)
        self._token = _token(token or os.environ.get("SLACK_BOT_TOKEN"), self.api_url)
        self._timeout_s = _timeout(timeout_s)
        self._client: AsyncWebClient | None = None
        self._clock_outside_jobs: Clock = SystemClock()
        self._time = SlackTime()
        self._identity = Identity()
        self._introduced_with: Clock | None = None
        self.on_phase: Callable[[str, str], Awaitable[None]] | None = None
        self.outcomes: Counter[tuple[str, str]] = Counter()

    async def call(
        self, method: str, arguments: Mapping[str, Any], policy: CallPolicy, *, gate_channel: str = "", needs: str = ""
    ) -> dict[str, Any]:
        """Call a method and return the body of its answer, in which ok is true and the field `needs` is there.

        `gate_channel` narrows a 429 to that channel. Raises RateLimited, NotSent, Unclear, ServerError or ApiError,
        and LeaseLost when the lease went during a wait: then nothing was applied.
        """
        retry = 0
        while True:
            await self._require_open_gate(method, gate_channel)
            try:
                body = await self._once(method, arguments, needs)
            except SlackError as error:
                self.outcomes[method, _outcome(error)] += 1
                wait_ms = await self._wait_for(error, policy, retry, gate_channel)
                if wait_ms is None:
                    raise
            else:
                self.outcomes[method, "ok"] += 1
                return body
            await self._clock.sleep(wait_ms / 1000)
            retry += 1
            job = current_or_none()
            if job:  # the lease may have gone to another run during the wait
                await job.require_lease()

    async def introduce(self) -> Identity:
        """Return who we are here; asks Slack once, which also shows Slack's clock. Raises what `call` raises."""
        clock = self._clock
        if self._introduced_with is not clock:
            self._identity = Identity.read(await self.call("auth.test", {}, LOOK_UP))
            self._introduced_with = clock
        return self._identity

    @property
    def timeout_ms(self) -> int:
        """Return how long one try of a call may take."""
        return self._timeout_s * 1000

    def now(self) -> EpochMs | None:
        """Return what Slack's clock shows at least by now, epoch ms; None when no answer has shown it."""
        return self._time.now(self._clock)

    async def announce(self, phase: str, item: str) -> None:
        """Tell the observer, if there is one, that an item reaches a phase."""
        if self.on_phase is not None:
            await self.on_phase(phase, item)

    async def _wait_for(self, error: SlackError, policy: CallPolicy, retry: int, gate_channel: str) -> int | None:
        """Return how long to sleep before repeating the call, or None when it ends here."""
        wait_ms = None
        if isinstance(error, RateLimited) and not error.gate:
            await self._close_gate(error, gate_channel)
            wait_ms = error.wait_ms if error.wait_ms <= policy.max_retry_after_ms else None
        elif isinstance(error, ServerError) and policy.retry_server_errors:
            wait_ms = min(backoff_ms(retry), policy.max_retry_after_ms)
        return wait_ms if retry < policy.max_retries else None

    async def _once(self, method: str, arguments: Mapping[str, Any], needs: str) -> dict[str, Any]:
        verb = {"http_verb": "GET", "params": dict(arguments)} if method in _READS else {"json": dict(arguments)}
        client = self.sdk()
        try:
            response = await client.api_call(method, **verb)
        except Exception as error:  # slack_sdk raises far more than its own error; all are sorted there
            raise read_failure(method, error) from error
        body = read_answer(method, response.data, needs)
        self._time.learn(header(response.headers, "Date"), body.get("ts") if method == POST else None, self._clock)
        return body

    def sdk(self) -> AsyncWebClient:
        """Return the SDK's client, for calls that the mirror doesn't make; it repeats nothing and minds no gate."""
        if self._client is None:
            self._client = _connect(self._token, self.api_url, self._timeout_s)
        return self._client

    @property
    def _clock(self) -> Clock:
        job = current_or_none()
        return job.runtime.clock if job else self._clock_outside_jobs

    async def _require_open_gate(self, method: str, channel: str) -> None:
        wait_ms = await self.gate_closed_for(method, channel)
        if wait_ms:
            self.outcomes[method, "gate"] += 1
            raise RateLimited(method, wait_ms, gate=True)

    async def gate_closed_for(self, method: str, channel: str) -> int:
        """Return for how many milliseconds a call has to wait at a gate; 0 when it may go, or outside of a job."""
        job = current_or_none()
        gates = await job.store.gates.closed(job.app) if job else ()
        waits = [gate.remaining_ms for gate in gates if gate.method == method and gate.channel in {"", channel}]
        return max(waits, default=0)

    async def _close_gate(self, error: RateLimited, channel: str) -> None:
        where = f" in {channel}" if channel else ""
        level = logging.WARNING if error.wait_ms > _LONG_WAIT_MS else logging.INFO
        log.log(level, "%s%s is closed for %d ms: rate limited by Slack", error.method, where, error.wait_ms)
        job = current_or_none()
        if job:
            await job.store.gates.close(job.app, error.method, channel, error.wait_ms, "rate limited by Slack")


def _outcome(error: SlackError) -> str:
    match error:
        case RateLimited():
            return "rate_limited"
        case NotSent():
            return "not_sent"
        case Unclear(cause=cause):
            return f"unclear:{cause}"
        case ApiError(error=code):
            return f"refused:{code}"
        case _:
            return "failed"


def _connect(token: str, api_url: str, timeout_s: int) -> AsyncWebClient:
    from slack_sdk.web.async_client import AsyncWebClient  # noqa: PLC0415 - half a second that only callers pay

    # retry_handlers=[]: by default the SDK repeats a post whose answer was lost.
    client = AsyncWebClient(token, base_url=api_url, timeout=timeout_s, retry_handlers=[])
    if is_loopback(api_url):
        client.proxy = None  # the SDK knows no NO_PROXY
    return client


def is_loopback(api_url: str) -> bool:
    """Tell whether an address is this machine's own."""
    return urlsplit(api_url).hostname in _LOOPBACK


def _api_url(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            f"{address!r} is not the address of a Slack API.",
            remedy="Set SLACK_API_URL to something like http://127.0.0.1:8901/api/, or unset it for Slack itself.",
        )
    path = parts.path.rstrip("/") or "/api"
    return f"{parts.scheme}://{parts.netloc}{path}/"


def _timeout(seconds: int) -> int:
    if 1 <= seconds <= TIMEOUT_S_MAX:
        return seconds
    raise ConfigurationError(
        f"A call to Slack can't take {seconds} s.",
        remedy=f"Give timeout_s from 1 to {TIMEOUT_S_MAX}: a post's claim has to outlast its call.",
    )


def _token(token: str | None, api_url: str) -> str:
    if token and token.strip():
        return token.strip()
    if is_loopback(api_url):
        return _STAND_IN_TOKEN
    raise ConfigurationError(
        "There is no Slack token.",
        remedy="Put the bot token (xoxb-...) into SLACK_BOT_TOKEN, or point SLACK_API_URL at a local stand-in.",
    )
