"""Which doubled posts a client could have avoided, told from the sandbox's own log alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kizami.sandbox.log import Entry

HISTORY: Final = "conversations.history"
_MICROSECONDS: Final = 1_000
"""In a millisecond."""


class Doubles(NamedTuple):
    """How many posts repeat another: `late` are those that no client could have avoided."""

    avoidable: int
    late: int


def count_doubles(entries: Sequence[Entry], channel: str) -> Doubles:
    """Count the posts of a channel beyond one a delivery.

    One is late when its copy was accepted after the answer to its call was lost, and was not to be seen in the last
    look-up before the repetition: a repetition without a look-up, or after one that showed the copy, is avoidable.
    """
    here = [entry for entry in entries if entry.channel == channel]
    posts: dict[str, list[Entry]] = {}
    for entry in here:
        if entry.effect == "post" and "delivery" in entry.delivery:
            posts.setdefault(str(entry.delivery["delivery"]), []).append(entry)
    calls = {entry.seq: entry for entry in here}
    looks = [entry for entry in here if _is_look(entry)]
    avoidable = late = 0
    for copies in posts.values():
        excused = sum(_came_too_late(copy, copies, calls, looks) for copy in copies)
        late += min(excused, len(copies) - 1)
        avoidable += max(0, len(copies) - 1 - excused)
    return Doubles(avoidable, late)


def _is_look(entry: Entry) -> bool:
    """Tell whether a history was shown to its caller: a fault may have kept its answer back or replaced it."""
    return entry.method == HISTORY and entry.span is not None and entry.answered and entry.fault is None


def _came_too_late(copy: Entry, copies: Sequence[Entry], calls: dict[int, Entry], looks: Sequence[Entry]) -> bool:
    """Tell whether each repetition had looked where the copy would have been, and before it was there."""
    doubted = None if copy.call is None else calls.get(copy.call)
    if doubted is None:
        return False
    repetitions = [came for came in map(_came, copies) if came > doubted.seq]
    return bool(repetitions) and all(_looked_in_vain(copy, doubted, came, looks) for came in repetitions)


def _came(post: Entry) -> int:
    """Return when a post was called for, as a number in the log's order."""
    return post.seq if post.call is None else post.call


def _looked_in_vain(copy: Entry, doubted: Entry, repeated: int, looks: Sequence[Entry]) -> bool:
    between = [look for look in looks if doubted.seq < look.seq < repeated]
    looked = any(_shows(look, doubted.at * _MICROSECONDS) for look in between)
    return looked and not any(copy.seq < look.seq and _shows(look, ts) for look in between for ts in _instants(copy))


def _instants(copy: Entry) -> Iterator[int]:
    if copy.ts is not None:
        seconds, _, fraction = copy.ts.partition(".")
        yield int(seconds) * 1_000_000 + int(fraction.ljust(6, "0"))


def _shows(look: Entry, at: int) -> bool:
    return look.span is not None and look.span[0] <= at <= look.span[1]
