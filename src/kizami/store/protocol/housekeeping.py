"""Housekeeping: what is removed when it was kept long enough, in bounded batches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Protocol

from kizami.core.errors import DefinitionError

_DAY_MS: Final = 24 * 3_600_000
_MOST: Final = 10**12


@dataclass(frozen=True, slots=True)
class Keep:
    """How long records are kept, in milliseconds; `ledger_rows` is a number of lines.

    The fire ledger keeps the lines of `ledger_ms`, and of each schedule the newest `ledger_rows` at most. A delivery is
    kept for `deliveries_ms` after it was delivered: as long as that its item is never posted again. A settled intent is
    kept for `intents_ms`, the row of a worker that shows no life for `silent_worker_ms`. Raises DefinitionError.
    """

    ledger_ms: int = 90 * _DAY_MS
    ledger_rows: int = 10_000
    deliveries_ms: int = 90 * _DAY_MS
    intents_ms: int = 7 * _DAY_MS
    silent_worker_ms: int = 7 * _DAY_MS

    def __post_init__(self) -> None:
        """Refuse what can't be kept."""
        for one in fields(self):
            value, least = getattr(self, one.name), _DAY_MS if one.name == "silent_worker_ms" else 1
            if type(value) is not int or not least <= value <= _MOST:
                raise DefinitionError(
                    f"Keep: {one.name} is {value!r}.",
                    remedy=f"Give a whole number from {least:,} to {_MOST:,}.",
                    field=one.name,
                )


class HousekeepingStore(Protocol):
    """Batches of housekeeping. Each removes at most `limit` rows along an index, whatever the tables hold."""

    async def sweep_ledger(self, app: str, keep: Keep, limit: int, after: str = "") -> str | None:
        """Remove old lines of schedules whose names come after one; return after which to go on, None at the end.

        The line of a schedule's last settled tick stays for ever.
        """
        ...

    async def sweep_deliveries(self, app: str, keep: Keep, limit: int) -> int:
        """Remove old delivered items with their intents; return how many items. Those set aside stay."""
        ...

    async def sweep_intents(self, app: str, keep: Keep, limit: int) -> int:
        """Remove intents that were settled long ago; return how many."""
        ...

    async def sweep_workers(self, keep: Keep, limit: int) -> tuple[str, ...]:
        """Bury workers, of any app, that were silent for long; return their ids."""
        ...
