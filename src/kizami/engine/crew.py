"""Everything that calls users' performers beside the event loop, and the count of what can't be ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kizami.engine.children import Children
from kizami.engine.overstays import Overstays
from kizami.engine.threads import Threads

if TYPE_CHECKING:
    from kizami.engine.performing import Performing, RunsIn
    from kizami.engine.station import Station


@dataclass(frozen=True, slots=True)
class Crew:
    """One worker's threads and child processes."""

    threads: Threads
    children: Children
    overstays: Overstays
    has_processes: bool

    @classmethod
    def of(cls, station: Station) -> Crew:
        """Return the crew of a worker."""
        settings = station.settings
        return cls(
            Threads("kizami-job"),
            Children(settings),
            Overstays(settings.overstays_max),
            settings.processes > 0,
        )

    def way_of(self, performer: Performing) -> RunsIn:
        """Return where a performer is called; where no processes are allowed, threads stand for them."""
        return "thread" if performer.runs_in == "process" and not self.has_processes else performer.runs_in
