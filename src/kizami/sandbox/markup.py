"""Turns mrkdwn into HTML that can't be more than text, emphasis, code and links."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup, escape

from kizami.sandbox.escaping import COMMAND

_OPEN, _CLOSE = "\ue000", "\ue001"
_KEPT = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_FENCE = re.compile(r"```\n?(.+?)\n?```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_EMPHASIS = (
    (re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])"), r"<strong>\1</strong>"),
    (re.compile(r"(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])"), r"<em>\1</em>"),
    (re.compile(r"(?<![\w~])~(\S(?:[^~\n]*\S)?)~(?![\w~])"), r"<s>\1</s>"),
)
_SAFE_ADDRESS = re.compile(r"(?:https?|mailto|tel):", re.IGNORECASE)
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def plain(text: object) -> str:
    """Return a text with Slack's three entities resolved; a template still has to escape it."""
    resolved = str(text).encode("utf-8", "replace").decode()
    for entity, character in _ENTITIES:
        resolved = resolved.replace(entity, character)
    return resolved


def mrkdwn(text: object) -> Markup:
    """Return a mrkdwn text as HTML. Everything is escaped before the first tag is added.

    Code and commands are put aside under a number first, so that emphasis neither reaches into them nor ends at them.
    """
    kept: list[Markup] = []

    def keep(make: Callable[[str], Markup]) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            kept.append(make(match[1]))
            return f"{_OPEN}{len(kept) - 1}{_CLOSE}"

        return replace

    raw = str(text).replace(_OPEN, "").replace(_CLOSE, "")
    raw = _FENCE.sub(keep(_fence), raw)
    raw = _CODE.sub(keep(_code), raw)
    raw = COMMAND.sub(keep(_command), raw)
    html = str(escape(plain(raw)))
    for pattern, replacement in _EMPHASIS:
        html = pattern.sub(replacement, html)
    while _KEPT.search(html):  # a kept part may hold another: code inside a link's label
        html = _KEPT.sub(lambda match: str(kept[int(match[1])]), html)
    return Markup(html)  # noqa: S704 - escaped above, before any tag was added


def link(part: Mapping[str, Any]) -> Markup:
    """Return the link of a rich text; an address that a browser might run is only shown."""
    url, label = plain(part.get("url", "")), plain(part.get("text") or part.get("url", ""))
    return _anchor(url, label) if _SAFE_ADDRESS.match(url) else Markup("{}").format(label)


def _anchor(url: str, label: str) -> Markup:
    return Markup('<a href="{}" rel="noreferrer noopener nofollow">{}</a>').format(url, label)


def _fence(content: str) -> Markup:
    return Markup("<pre>{}</pre>").format(plain(content))


def _code(content: str) -> Markup:
    return Markup("<code>{}</code>").format(plain(content))


def _command(content: str) -> Markup:
    target, _, label = content.partition("|")
    if target[0] not in "@#!":
        return _anchor(plain(target), plain(label or target))
    return Markup('<span class="mention">{}</span>').format(plain(_mention(target, label)))


def _mention(target: str, label: str) -> str:
    if target.startswith("!date^"):
        return label or target
    sign, name = ("#", target[1:]) if target[0] == "#" else ("@", target[1:].rpartition("^")[2])
    return f"{sign}{(label or name).removeprefix(sign)}"
