"""What an unattended run of the demo showed, and what it must have shown to count as a proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from kizami.demo.supervisor import BOARD_PHASES, PHASES

NOTICES: Final = 118
"""How many turns to down the recording has: a run that owes fewer proves less than it says."""
KILLS_LEAST: Final = 50
KILLS_LEAST_A_PHASE: Final = 5
BOARD_EDITS_LEAST: Final = 100
BEGIN_SECONDS_MOST: Final = 15.0
"""From the first worker's turn to the beginning of its schedule: a later one would plan too few ticks."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the run showed. Due is counted from the recording, delivered and doubled from the sandbox's own log.

    `ticks_planned` is counted from the clock: the intervals from the schedule's beginning, which came `began_after`
    seconds after the first worker's turn, to the end of the replay. `duplicated` leaves out `duplicated_late`:
    repetitions of a post that Slack accepted only after it was looked for. `acceptances_unmarked` counts what may
    double a post that nobody looks for, from the kills and the sandbox's log alone: acceptances whose answer was lost,
    late ones among them, or that a kill parted from their marker.
    """

    checks: int
    ticks_planned: int
    ticks_fired: int
    ticks_skipped: int
    ticks_missed: int
    ticks_failed: int
    began_after: float
    board_posts: int
    board_edits: int
    notices_due: int
    notices_delivered: int
    duplicated: int
    duplicated_late: int
    late_acceptances: int
    acceptances_unmarked: int
    lost: int
    kills: int
    kills_by_phase: dict[str, int]
    kills_at_board: dict[str, int]
    seconds: float
    ended_in_time: bool

    def as_json(self) -> dict[str, object]:
        """Return the verdict under the names that it is printed with."""
        return asdict(self)

    def holds(self, *, lookup: bool) -> bool:
        """Tell whether the run met every demand."""
        return not self.unmet(lookup=lookup)

    def unmet(self, *, lookup: bool) -> dict[str, str]:
        """Return the demands that the run did not meet, by name; without look-up, a lost answer may double a post."""
        demands = (*self._of_the_run(), *self._of_the_mirror(), *self._of_doubles(lookup=lookup))
        return {name: said for name, is_met, said in demands if not is_met}

    def _of_the_run(self) -> Iterator[tuple[str, bool, str]]:
        yield "time_limit", self.ended_in_time, f"the time limit expired: {self.seconds} s were not enough"
        yield "kills", self.kills >= KILLS_LEAST, f"{self.kills} kills, at least {KILLS_LEAST} are demanded"
        fewest = min(self.kills_by_phase.get(phase, 0) for phase in PHASES)
        said = f"a phase with {fewest} kills, at least {KILLS_LEAST_A_PHASE} are demanded in each"
        yield "kills_by_phase", fewest >= KILLS_LEAST_A_PHASE, said
        *alone, accepted, answered = (self.kills_at_board.get(phase, 0) for phase in BOARD_PHASES)
        said = f"{self.kills_at_board} kills at the board's first post, at least 1 is demanded before its acceptance"
        said += " at either point, and 1 after it"
        yield "kills_at_board", min(alone) >= 1 and accepted + answered >= 1, said
        said = (
            f"the schedule began {self.began_after} s after the first worker, at most {BEGIN_SECONDS_MOST} are allowed"
        )
        yield "began_after", 0 <= self.began_after <= BEGIN_SECONDS_MOST, said
        accounted = self.ticks_fired + self.ticks_skipped + self.ticks_missed + self.ticks_failed
        said = f"{self.ticks_planned} ticks planned, but {accounted} fired, skipped, missed or failed"
        yield "ticks", accounted == self.ticks_planned, said

    def _of_the_mirror(self) -> Iterator[tuple[str, bool, str]]:
        yield "board_posts", self.board_posts == 1, f"{self.board_posts} posts of the board, exactly 1 is demanded"
        said = f"{self.board_edits} edits of the board, at least {BOARD_EDITS_LEAST} are demanded"
        yield "board_edits", self.board_edits >= BOARD_EDITS_LEAST, said
        said = f"{self.notices_due} notices due, {NOTICES} are demanded"
        yield "notices_due", self.notices_due == NOTICES, said
        said = f"{self.notices_delivered} notices delivered, {NOTICES} are demanded"
        yield "notices_delivered", self.notices_delivered == NOTICES, said
        yield "lost", self.lost == 0, f"{self.lost} notices lost, none may be"

    def _of_doubles(self, *, lookup: bool) -> Iterator[tuple[str, bool, str]]:
        least, most = (0, 0) if lookup else (1, self.acceptances_unmarked)
        said = f"{self.duplicated} posts doubled, {f'{least} to {most}' if most else 'none'} may be"
        yield "duplicated", least <= self.duplicated <= most, said
        said = f"{self.duplicated_late} posts doubled by {self.late_acceptances} late acceptances"
        yield "duplicated_late", self.duplicated_late <= self.late_acceptances, said
