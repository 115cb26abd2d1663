"""What this process remembers of its own claims, so that the commonest report needs no look at the row before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.states import JobState

if TYPE_CHECKING:
    from kizami.store.protocol import Report

REMEMBERED_MAX: Final = 100_000
_AT_LEAST_ONCE: Final = "at-least-once"


class ClaimMemory:
    """The first claims of at-least-once jobs: their shard and concurrency_key, which never change.

    Only a shortcut: what is forgotten is read, and every write still carries its claim number. Each step
    is one operation on a dict, so any thread may take it.
    """

    def __init__(self) -> None:
        self._claims: dict[int, tuple[int, str | None]] = {}

    def note(self, row: tuple[Any, ...]) -> None:
        """Remember a row that the statement `claim` returned."""
        key, claim, shard_key = row[:3]
        if claim == 1 and row[13] == _AT_LEAST_ONCE:
            if len(self._claims) >= REMEMBERED_MAX:
                self._claims.clear()
            self._claims[key] = (shard_key, row[14])

    def forget(self, report: Report) -> tuple[int, str | None] | None:
        """Return shard and concurrency_key of a job whose first claim is completed by this report, else None."""
        known = self._claims.pop(report.key, None)
        plain = report.state is JobState.COMPLETED and report.claim == 1 and not report.skipped_by_lease
        return known if plain else None
