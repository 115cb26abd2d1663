from __future__ import annotations

import re
from pathlib import Path

import pytest

import kizami.web

_STYLE = Path(kizami.web.__file__).with_name("static") / "kizami.css"
_TEXTS = ("ink", "soft", "accent", "hand", "good", "warn", "bad")
_GROUNDS = ("ground", "sheet")
_READABLE = 4.5  # WCAG 2.2, level AA, for text of any size


def _schemes() -> list[dict[str, str]]:
    """Return the named colours of the style sheet: those of the day, and those of the night."""
    blocks = re.findall(r":root \{(.+?)\}", _STYLE.read_text(encoding="utf-8"), re.DOTALL)
    return [dict(re.findall(r"--(\w+): #([0-9a-f]{6});", block)) for block in blocks]


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["day", "night"])
def test_every_text_is_readable_on_every_ground(scheme: int) -> None:
    colours = _schemes()[scheme]
    contrasts = {f"{text} on {on}": _contrast(colours[text], colours[on]) for text in _TEXTS for on in _GROUNDS}
    assert {pair: value for pair, value in contrasts.items() if value < _READABLE} == {}


def test_both_schemes_name_the_same_colours() -> None:
    day, night = _schemes()
    assert day.keys() == night.keys()
