"""The coming hour of a schedule, as the strokes of a line: where its ticks lie between now and then."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from kizami.core.timing import fires

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.store.protocol import Schedule

SPAN_MS: Final = 3_600_000
WIDTH: Final = 600
_STROKES_MAX: Final = 200


def strokes(schedule: Schedule, now: EpochMs) -> str:
    """Return an SVG path with one stroke for each tick of the coming hour; none while it is paused or broken."""
    if schedule.paused_at is not None or schedule.timing is None:
        return ""
    planned = takewhile(lambda at: at <= now + SPAN_MS, fires(schedule.timing, now, schedule.anchor_at))
    return "".join(f"M{(at - now) * WIDTH // SPAN_MS} 3v10" for at in islice(planned, _STROKES_MAX))
