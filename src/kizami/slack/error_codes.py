"""Every error code of Slack's that a mirror may meet, and what it asks for: the one table of them."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
    UNKNOWN = "unknown"
    """A code that is not in the table: nothing can be concluded about the item, so it stays owed."""


RATE_LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
"""In the body of a 429, and, rarely, of a 200."""

_CODES: Final[Mapping[ErrorClass, str]] = {
    ErrorClass.RETRY: """
        ratelimited rate_limited message_limit_exceeded service_unavailable team_added_to_org org_login_required
        external_channel_migrating canvas_editing_locked streaming_state_conflict request_timeout hash_conflict
        invalid_cursor
    """,
    ErrorClass.UNCLEAR: "internal_error fatal_error update_failed",
    ErrorClass.REPOST: """
        message_not_found edit_window_closed cant_update_message cant_delete_message
        row_not_found invalid_row_id record_not_found record_deleted
    """,
    ErrorClass.CONTENT: """
        msg_too_long msg_blocks_too_long invalid_blocks invalid_blocks_format invalid_attachments too_many_attachments
        attachment_payload_limit_exceeded too_many_contact_cards missing_file_data no_text markdown_text_conflict
        metadata_too_large invalid_metadata_format invalid_metadata_schema invalid_arguments block_mismatch
        only_one_table_allowed over_row_maximum over_column_maximum over_cell_fields_limit
        slack_connect_canvas_sharing_blocked slack_connect_file_link_sharing_blocked
        slack_connect_lists_sharing_blocked
    """,
    ErrorClass.CHANNEL: """
        is_inactive is_archived channel_not_found not_in_channel ekm_access_denied messages_tab_disabled
        posting_to_channel_denied list_not_found channel_is_limited_access method_not_supported_for_channel_type
        restricted_action restricted_action_read_only_channel restricted_action_thread_only_channel
        restricted_action_non_threadable_channel restricted_action_thread_locked
    """,
    ErrorClass.CONFIG: """
        not_authed invalid_auth account_inactive token_revoked token_expired missing_scope not_allowed_token_type
        no_permission access_denied accesslimited two_factor_setup_required enterprise_is_restricted
        team_access_not_granted team_not_found metadata_must_be_sent_from_app as_user_not_supported
        unknown_method method_deprecated deprecated_endpoint invalid_arg_name invalid_array_arg invalid_json
        json_not_object invalid_post_type missing_post_type invalid_charset missing_charset invalid_form_data
        invalid_ts_oldest invalid_ts_latest invalid_limit invalid_metadata_filter_keys
        thread_not_found cannot_reply_to_message cant_broadcast_message no_dual_broadcast_content_update
        duplicate_channel_not_found duplicate_message_not_found
        invalid_column_id column_not_found uneditable_column invalid_option_id
    """,
}
ERROR_CLASSES: Final[Mapping[str, ErrorClass]] = MappingProxyType(
    {code: kind for kind, codes in _CODES.items() for code in codes.split()},
)
_AN_ADMINS_CHOICE: Final = "restricted_action"
"""Slack adds to this family of codes from time to time."""


def error_class(error: str) -> ErrorClass:
    """Return what one of Slack's error codes asks for."""
    unlisted = ErrorClass.CHANNEL if error.startswith(_AN_ADMINS_CHOICE) else ErrorClass.UNKNOWN
    return ERROR_CLASSES.get(error, unlisted)
