"""What can become of a call to Slack, as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kizami.core.errors import KizamiError
from kizami.slack.error_codes import ErrorClass, error_class

if TYPE_CHECKING:
    from collections.abc import Mapping


class SlackError(KizamiError):
    """Base of everything that a call to Slack can end in, other than success; `method` names the call."""

    code: ClassVar[str] = "slack"

    def __init__(self, method: str, message: str, *, remedy: str | None = None, **facts: object) -> None:
        super().__init__(message, remedy=remedy, method=method, **facts)
        self.method = method


class RateLimited(SlackError):  # noqa: N818 - a state of the channel or method, not a fault
    """Slack (or a closed gate, then no call was made) asks to wait for `wait_ms`; nothing was applied."""

    code = "slack_rate_limited"

    def __init__(self, method: str, wait_ms: int, *, gate: bool = False) -> None:
        why = "its gate is closed" if gate else "Slack answered 429"
        super().__init__(method, f"{method} has to wait {wait_ms} ms more: {why}.", wait_ms=wait_ms, gate=gate)
        self.wait_ms = wait_ms
        self.gate = gate


class NotSent(SlackError):  # noqa: N818 - says what is known of the call
    """The connection was refused, or the name or certificate failed: nothing was sent."""

    code = "slack_unreachable"

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(
            method,
            f"{method} was not sent: {reason}.",
            remedy="Check SLACK_API_URL, the network and the proxy settings; the next try goes on from here.",
        )


class Unclear(SlackError):  # noqa: N818 - says what is known of the call
    """The call may or may not have been applied; `cause` says how its answer was lost."""

    code = "slack_unclear"

    def __init__(self, method: str, cause: str, detail: str = "") -> None:
        shown = f" ({detail})" if detail else ""
        super().__init__(method, f"The outcome of {method} is unknown: {cause}{shown}.", cause=cause)
        self.cause = cause


class ServerError(Unclear):
    """Slack answered with a 5xx `status`; the call may have been applied."""

    code = "slack_server_error"

    def __init__(self, method: str, status: int) -> None:
        super().__init__(method, "server_error", f"HTTP {status}")
        self.status = status


class ApiError(SlackError):
    """Slack refused: `error` is its code, `kind` what that asks for, `details` its validation messages."""

    code = "slack_refused"

    def __init__(self, method: str, error: str, details: tuple[str, ...] = (), facts: str = "") -> None:
        said = "; ".join((*details, *([facts] if facts else [])))
        shown = f" ({said})" if said else ""
        kind = error_class(error)
        super().__init__(
            method,
            f"Slack refused {method}: {error}{shown}.",
            remedy=_REMEDY_OF_UNKNOWN if kind is ErrorClass.UNKNOWN else _REMEDIES.get(error),
            error=error,
            kind=kind.value,
        )
        self.error = error
        self.kind = kind
        self.details = details


_REMEDIES: Final[Mapping[str, str]] = {
    "not_in_channel": "Invite the bot to the channel.",
    "channel_not_found": "Check the channel's id; a private channel is invisible until the bot is invited.",
    "is_archived": "Unarchive the channel or name another one.",
    "missing_scope": "Add the scope to the Slack app and install it again.",
    "invalid_auth": "Put a valid bot token into SLACK_BOT_TOKEN.",
    "not_authed": "Put a bot token into SLACK_BOT_TOKEN.",
    "token_revoked": "Install the Slack app again and put its new token into SLACK_BOT_TOKEN.",
    "token_expired": "Refresh the token, or turn token rotation off.",
    "account_inactive": "The bot or its workspace was removed: install the Slack app again.",
}
_REMEDY_OF_UNKNOWN: Final = (
    "Kizami doesn't know this code, so nothing is set aside for it: look it up in Slack's reference."
)
