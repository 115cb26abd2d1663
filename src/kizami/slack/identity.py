"""Who we are in the workspace, so that a message is known as our own by what only Slack can write into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_IDS = ("bot_id", "app_id", "user_id")


@dataclass(frozen=True, slots=True)
class Identity:
    """The ids behind a token, "" where Slack names none."""

    bot_id: str = ""
    app_id: str = ""
    user_id: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Identity:
        """Return the identity that an answer of auth.test tells."""
        ids = (body.get(name) for name in _IDS)
        return cls(*(found if isinstance(found, str) else "" for found in ids))

    def wrote(self, message: Mapping[str, Any]) -> bool:
        """Tell whether a message of a channel's history is ours; its metadata anybody there could have copied."""
        ours = ((self.bot_id, "bot_id"), (self.app_id, "app_id"), (self.user_id, "user"))
        return any(own and own == message.get(name) for own, name in ours)
