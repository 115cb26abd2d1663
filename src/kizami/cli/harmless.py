"""Texts of other people, so written that a terminal and a log show them and don't obey them.

Names, payloads, errors and database values may hold characters that move the cursor, colour or hide what follows, begin
a line of their own or turn its direction.
"""

from __future__ import annotations

import re
from typing import Final

_ACTIVE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, line and paragraph separators, and changes of direction."""

_BYTE_MAX: Final = 0xFF


def harmless(text: str) -> str:
    r"""Return a text with such characters written as `\x1b` or `\u202e`."""
    return _ACTIVE.sub(_spelt, text)


def harmless_json(text: str) -> str:
    r"""Return a JSON document that means the same, with such characters written as `\u001b`."""
    return _ACTIVE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _spelt(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\x{number:02x}" if number <= _BYTE_MAX else f"\\u{number:04x}"
