from __future__ import annotations

import pytest

from kizami.core.errors import ConfigurationError
from kizami.slack import Slack
from kizami.slack.answers import read_answer, read_failure
from kizami.slack.error_codes import ErrorClass, error_class
from kizami.slack.errors import ApiError, Unclear
from kizami.slack.policy import DEFAULT_WAIT_MS, POSTING, SWEEP, backoff_ms, retry_after_ms


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        ("7", 7_000),
        ("7.5", 7_500),
        ("0", 1_000),
        ("0.2", 1_000),
        ("86400", 86_400_000),
        (" 3 ", 3_000),
        (None, DEFAULT_WAIT_MS),
        ("", DEFAULT_WAIT_MS),
        ("soon", DEFAULT_WAIT_MS),
        ("-1", DEFAULT_WAIT_MS),
        ("nan", DEFAULT_WAIT_MS),
        ("inf", DEFAULT_WAIT_MS),
        ("Wed, 21 Oct 2026 07:28:00 GMT", DEFAULT_WAIT_MS),
    ],
)
def test_every_retry_after_has_a_wait(header: str | None, wait_ms: int) -> None:
    """B074."""
    assert retry_after_ms(header) == wait_ms


def test_posts_fail_fast_and_sweeps_are_patient() -> None:
    assert (POSTING.max_retries, POSTING.max_retry_after_ms, POSTING.retry_server_errors) == (2, 2_000, False)
    assert (SWEEP.max_retries, SWEEP.max_retry_after_ms, SWEEP.retry_server_errors) == (5, 60_000, True)
    assert [backoff_ms(retry) for retry in (0, 1, 2, 60)] == [1_000, 2_000, 4_000, 30_000]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("message_limit_exceeded", ErrorClass.RETRY),
        ("internal_error", ErrorClass.UNCLEAR),
        ("message_not_found", ErrorClass.REPOST),
        ("edit_window_closed", ErrorClass.REPOST),
        ("msg_blocks_too_long", ErrorClass.CONTENT),
        ("is_archived", ErrorClass.CHANNEL),
        ("restricted_action_thread_only_channel", ErrorClass.CHANNEL),
        ("missing_scope", ErrorClass.CONFIG),
        ("restricted_action_of_next_year", ErrorClass.CHANNEL),
        ("a_code_of_next_year", ErrorClass.UNKNOWN),
    ],
)
def test_every_code_asks_for_something(code: str, kind: ErrorClass) -> None:
    assert error_class(code) is kind


@pytest.mark.parametrize(
    "body", [None, "", [1], [], {}, {"ok": False}, {"ok": "true", "ts": "1.1"}, {"ok": True}, {"ok": True, "ts": 1.1}]
)
def test_nothing_is_success_by_default(body: object) -> None:
    """B077: delivered only when ok is true and a ts is there, as text."""
    with pytest.raises(Unclear):
        read_answer("chat.postMessage", body, "ts")


def test_whatever_the_sdk_stumbles_over_is_unclear() -> None:
    assert isinstance(read_failure("chat.postMessage", AttributeError("'str' has no attribute 'get'")), Unclear)
    assert isinstance(read_failure("chat.postMessage", TimeoutError()), Unclear)


def test_a_refusal_names_the_remedy() -> None:
    error = ApiError("chat.postMessage", "missing_scope", facts="needs the scope chat:write")
    assert str(error).startswith("Slack refused chat.postMessage: missing_scope (needs the scope chat:write).")
    assert "install it again" in str(error)


def test_a_missing_token_is_said_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLACK_BOT_TOKEN", raising=False)
    monkeypatch.delenv("SLACK_API_URL", raising=False)
    with pytest.raises(ConfigurationError, match="SLACK_BOT_TOKEN"):
        Slack()
    with pytest.raises(ConfigurationError, match="not the address"):
        Slack("xoxb-1", "127.0.0.1:8901")


@pytest.mark.parametrize("address", ["http://127.0.0.1:8901", "http://localhost:8901/api/", "http://[::1]:8901/api"])
def test_a_stand_in_on_this_machine_needs_no_token(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.delenv("SLACK_BOT_TOKEN", raising=False)
    monkeypatch.setenv("SLACK_API_URL", address)
    assert Slack().api_url.endswith(":8901/api/")


def test_the_sdk_repeats_nothing_and_a_proxy_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    near = Slack("xoxb-1", "http://127.0.0.1:8901").sdk()
    far = Slack("xoxb-1", "https://slack.example").sdk()
    assert (near.retry_handlers, near.proxy) == ([], None)
    assert (far.retry_handlers, far.proxy) == ([], "http://proxy.example:3128")
