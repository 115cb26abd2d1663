"""What can become of a call to Slack, as types, and what each of Slack's error codes means for a mirror."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from kizami.core.errors import KizamiError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorClass(StrEnum):
    """What a refusal asks for."""

    RETRY = "retry"
    """Surely not applied: repeat later."""
    UNCLEAR = "unclear"
    """May have been applied: look before repeating."""
    REPOST = "repost"
    """The known message is gone or can't be edited any more: post anew."""
    CONTENT = "content"
    """This payload can never pass: shrink it or set it aside."""
    CHANNEL = "channel"
    """Nothing can be shown in this channel: stop it and say so."""
    CONFIG = "config"
    """Nothing will work until a person changes token, scopes or code."""


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
            remedy=_REMEDIES.get(error),
            error=error,
            kind=kind.value,
        )
        self.error = error
        self.kind = kind
        self.details = details


def error_class(error: str) -> ErrorClass:
    """Return what one of Slack's error codes asks for; a code that nobody knows is the item's own fault."""
    if error.startswith("restricted_action"):
        return ErrorClass.CHANNEL
    return ERROR_CLASSES.get(error, ErrorClass.CONTENT)


def is_known(error: str) -> bool:
    """Tell whether a code of Slack's stands in the table."""
    return error in ERROR_CLASSES or error.startswith("restricted_action")


RATE_LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
"""In the body of a 429, and, rarely, of a 200."""

_CODES: Final[Mapping[ErrorClass, str]] = {
    ErrorClass.RETRY: """
        ratelimited rate_limited message_limit_exceeded service_unavailable team_added_to_org org_login_required
        external_channel_migrating canvas_editing_locked streaming_state_conflict request_timeout hash_conflict
    """,
    ErrorClass.UNCLEAR: "internal_error fatal_error update_failed",
    ErrorClass.REPOST: """
        message_not_found edit_window_closed cant_update_message cant_delete_message
        row_not_found invalid_row_id record_not_found record_deleted
    """,
    ErrorClass.CONTENT: """
        msg_too_long msg_blocks_too_long invalid_blocks invalid_blocks_format invalid_attachments too_many_attachments
        no_text markdown_text_conflict metadata_too_large invalid_metadata_format invalid_metadata_schema
        invalid_arguments block_mismatch only_one_table_allowed
        over_row_maximum over_column_maximum over_cell_fields_limit
    """,
    ErrorClass.CHANNEL: """
        is_inactive is_archived channel_not_found not_in_channel ekm_access_denied messages_tab_disabled
        posting_to_channel_denied list_not_found
    """,
    ErrorClass.CONFIG: """
        not_authed invalid_auth account_inactive token_revoked token_expired missing_scope not_allowed_token_type
        no_permission access_denied accesslimited two_factor_setup_required enterprise_is_restricted
        team_access_not_granted unknown_method method_deprecated deprecated_endpoint invalid_arg_name invalid_json
        invalid_post_type invalid_charset invalid_column_id column_not_found uneditable_column invalid_option_id
    """,
}
ERROR_CLASSES: Final[Mapping[str, ErrorClass]] = MappingProxyType(
    {code: kind for kind, codes in _CODES.items() for code in codes.split()},
)

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
