"""Progress as performers report it."""

from __future__ import annotations

import math


def clamp_progress(value: object) -> float | None:
    """Return progress within 0..1; None for NaN, booleans and anything that is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(min(1, max(0, value)))
