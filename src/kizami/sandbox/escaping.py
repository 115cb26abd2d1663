"""How Slack stores a text: `&`, `<` and `>` as entities, except where they are part of one or of a command."""

from __future__ import annotations

import re

COMMAND = re.compile(r"<((?:[@#!]|https?:|mailto:|tel:)[^<>\n]*)>")
"""What mrkdwn does something with: mentions, channels, links."""
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt);)")


def stored(text: str) -> str:
    """Return a plain text as Slack stores it."""
    return _BARE_AMPERSAND.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")


def stored_mrkdwn(text: str) -> str:
    """Return a mrkdwn text as Slack stores it: commands stay."""
    parts = COMMAND.split(text)
    return "".join(f"<{part}>" if is_command else stored(part) for part, is_command in _marked(parts))


def _marked(parts: list[str]) -> list[tuple[str, bool]]:
    """Pair each part of a split with whether the pattern matched it: every other one, as it has one group."""
    return [(part, index % 2 == 1) for index, part in enumerate(parts)]
