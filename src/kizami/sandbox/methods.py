"""The methods that the sandbox knows, with how each may be called and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from kizami.sandbox import chat, conversations
from kizami.sandbox.arguments import Arguments
from kizami.sandbox.callers import Caller, Result


class Rate(StrEnum):
    """Slack's rate tiers, and the methods with rules of their own."""

    TIER_2 = "tier_2"
    TIER_3 = "tier_3"
    SPECIAL = "special"
    POSTING = "posting"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Method:
    """One method: what it does, its rate, and which requests it takes."""

    run: Callable[[Caller, Arguments], Result]
    rate: Rate
    takes_json: bool = True
    takes_get: bool = False


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "auth.test": Method(conversations.auth_test, Rate.SPECIAL, takes_get=True),
        "chat.delete": Method(chat.delete, Rate.TIER_3),
        "chat.getPermalink": Method(chat.get_permalink, Rate.SPECIAL, takes_json=False, takes_get=True),
        "chat.postMessage": Method(chat.post_message, Rate.POSTING),
        "chat.update": Method(chat.update, Rate.TIER_3),
        "conversations.history": Method(conversations.history, Rate.HISTORY, takes_get=True),
        "conversations.info": Method(conversations.info, Rate.TIER_3, takes_json=False, takes_get=True),
        "conversations.join": Method(conversations.join, Rate.TIER_3),
        "conversations.list": Method(conversations.list_channels, Rate.TIER_2, takes_json=False, takes_get=True),
    }
)
