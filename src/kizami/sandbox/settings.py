"""Every number, name and switch of the sandbox; the defaults are Slack's documented values where it documents any."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kizami.core.errors import ConfigurationError
from kizami.core.tokens import is_printable

ALL_SCOPES = frozenset(
    {"channels:history", "channels:join", "channels:read", "chat:write", "groups:history", "groups:read"}
)


TIME_SCALE_MIN = 0.001
TIME_SCALE_MAX = 1_000_000
_RATE_MIN = 0.001
_COUNT_MAX = 1_000_000_000
_SECONDS_MAX = 1_000_000_000


class TokenState(StrEnum):
    """What has become of a token; the value of each, but the first, is the error that Slack answers with."""

    ACTIVE = "active"
    INACTIVE = "account_inactive"
    REVOKED = "token_revoked"
    EXPIRED = "token_expired"


@dataclass(frozen=True, slots=True)
class BotSeed:
    """A bot that may call, known by its token. Without chat:write.public it must be a member to post."""

    token: str = "xoxb-sandbox"  # noqa: S105 - a stand-in's token opens nothing
    name: str = "kizami"
    scopes: frozenset[str] = ALL_SCOPES
    state: TokenState = TokenState.ACTIVE


@dataclass(frozen=True, slots=True)
class ChannelSeed:
    """A channel to start with; `is_member` says whether the bots are in it."""

    id: str
    name: str
    is_private: bool = False
    is_archived: bool = False
    is_member: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that a message must keep.

    Texts are counted in characters, by default as Slack stores them: a bare `&`, `<` or `>` counts as its entity.
    """

    count_after_escaping: bool = True
    post_text: int = 40_000  # longer ones are cut, with the warning message_truncated
    update_text: int = 4_000
    markdown_text: int = 12_000
    blocks: int = 50
    blocks_text_total: int = 13_200  # seen in the field; Slack documents no number
    block_id: int = 255
    section_text: int = 3_000
    section_fields: int = 10
    field_text: int = 2_000
    header_text: int = 150
    context_elements: int = 10
    actions_elements: int = 25
    button_text: int = 75
    action_id: int = 255
    button_value: int = 2_000
    url: int = 3_000
    alt_text: int = 2_000
    table_rows: int = 100  # the header row included, as Slack doesn't say that it isn't
    table_columns: int = 20
    table_text: int = 10_000  # all cells of all tables of a message
    tables: int = 1
    table_numbers: bool = False  # raw_number cells are documented, yet refused on posting
    attachments: int = 100
    metadata_bytes: int = 8_192  # the error is documented, the number is not


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a method may be called, per app; all windows slide and are measured in sandbox time."""

    window_s: int = 60
    tier_2: int = 20
    tier_3: int = 50
    special: int = 300  # auth.test and chat.getPermalink: "hundreds a minute"
    posts_per_second: float = 1.0  # per channel
    post_burst: int = 4  # posts in one channel that may come at once
    posts_per_window: int = 300  # the whole workspace; Slack names no number
    history_limited_calls: int = 1
    history_limited_messages: int = 15


def _default_channels() -> tuple[ChannelSeed, ...]:
    return (ChannelSeed("C0STATUS", "status"), ChannelSeed("C0ALERTS", "alerts"))


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """How a sandbox behaves. Durations are seconds of sandbox time."""

    channels: tuple[ChannelSeed, ...] = field(default_factory=_default_channels)
    bots: tuple[BotSeed, ...] = (BotSeed(),)
    team: str = "Kizami sandbox"
    limits: Limits = Limits()
    rates: Rates = Rates()
    rate_limited: bool = True
    history_limited: bool = False
    """Treat the apps as sold outside the Marketplace: history once a minute, 15 messages at most."""
    history_page_max: int = 999
    """Pages stop at this many messages although the caller may ask for more, as Slack's may."""
    edit_window_s: float | None = None
    """How long after posting a message can be edited; 0 is never, None is always."""
    time_scale: float = 1.0
    """Sandbox seconds in a real second: at 60 a rate window of a minute passes in a second."""
    messages_kept: int = 10_000
    """Per channel; older ones vanish, as under a retention rule."""
    entries_kept: int = 100_000
    """How much of its log the sandbox keeps in memory; the log's file has all."""
    log_file: Path | None = None
    control_token: str | None = None
    """Opens the pages and /sandbox/… to who has it, and to nobody else; without one only this machine may control."""
    time_zone: str = "UTC"
    """In which the page shows times."""

    def __post_init__(self) -> None:
        _require_within("time_scale", self.time_scale, TIME_SCALE_MIN, TIME_SCALE_MAX)
        if self.edit_window_s is not None:
            _require_within("edit_window_s", self.edit_window_s, 0, _SECONDS_MAX)
        for name, least in (("posts_per_second", _RATE_MIN), ("post_burst", 1), ("window_s", 1)):
            _require_within(f"rates.{name}", getattr(self.rates, name), least, _COUNT_MAX)
        for name in ("history_page_max", "messages_kept", "entries_kept"):
            _require_within(name, getattr(self, name), 1, _COUNT_MAX)
        if self.control_token is not None and not _is_token(self.control_token):
            # Not shown: it may be a secret with a typing error.
            raise ConfigurationError(
                "SandboxSettings.control_token can't be used.",
                remedy="Give printable ASCII characters without spaces, or None.",
            )
        for name, keys in (
            ("channels", [channel.id for channel in self.channels]),
            ("channels", [channel.name for channel in self.channels]),
            ("bots", [bot.token for bot in self.bots]),
        ):
            if len(set(keys)) < len(keys) or not all(keys):
                raise _wrong(name, keys, "Give each an id and a name, or a token, of its own.")


def _wrong(field: str, value: object, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"SandboxSettings.{field} can't be {value!r}.", remedy=remedy)


def _require_within(field: str, value: object, least: float, most: float) -> None:
    """Refuse what is no number between the two; NaN is between none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _wrong(field, value, f"Use a number from {least:g} to {most:,}.")


def _is_token(token: object) -> bool:
    return isinstance(token, str) and bool(token) and is_printable(token)
