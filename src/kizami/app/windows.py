"""The posting windows of an app's schedules, checked whenever its definitions are put in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.errors import DefinitionError
from kizami.core.timing import IntervalTiming

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kizami.app.definitions import ScheduleInCode
    from kizami.core.times import EpochMs
    from kizami.store.protocol import ScheduleStore

_SHOWN_MAX: Final = 10


async def require_kept(app: str, definitions: Iterable[ScheduleInCode], store: ScheduleStore, now_ms: EpochMs) -> None:
    """Raise DefinitionError unless every tick from now on falls inside its schedule's window, at every offset.

    An interval that is stored counts from its stored phase, a new one from now.
    """
    windowed = [entry for entry in definitions if entry.window is not None]
    anchors: dict[str, EpochMs] = {}
    if any(isinstance(entry.timing, IntervalTiming) for entry in windowed):
        anchors = {stored.name: stored.anchor_at for stored in await store.list(app)}
    found = [
        f"Schedule {entry.name}: {finding.message}"
        for entry in windowed
        for finding in entry.findings(now_ms, anchors.get(entry.name))
    ]
    if found:
        more = len(found) - _SHOWN_MAX
        raise DefinitionError(
            " ".join(found[:_SHOWN_MAX]) + (f" And {more} more." if more > 0 else ""),
            remedy="Change its timing or its window; `kizami check` lists them all.",
            field="window",
        )
