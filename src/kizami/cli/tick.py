"""`kizami tick`: for external clocks, which deliver each tick at least once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kizami.cli.exit_codes import ExitCode
from kizami.cli.loading import AppPlace
from kizami.cli.numbers import require_within
from kizami.cli.opened import with_open_app
from kizami.cli.printing import AsJson, notice, print_json, print_line
from kizami.cli.waiting import wait_for_end
from kizami.core.errors import InvalidInputError
from kizami.core.states import JobState
from kizami.core.times import format_local, to_datetime, to_epoch_ms
from kizami.store.protocol import FireOutcome

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.store.protocol import FireRecord, Job

WAIT_MAX: Final = 2_592_000
_OPTION: Final = "--scheduled-time"
_DIGITS_MAX: Final = 18
_SHOWN_MAX: Final = 100
_HANDLED: Final = frozenset(
    {
        FireOutcome.FIRED,
        FireOutcome.DUPLICATE,
        FireOutcome.OVERTAKEN,
        FireOutcome.SKIPPED_OVERLAP,
        FireOutcome.SKIPPED_LEASE,
        FireOutcome.MISSED,
        FireOutcome.PAUSED,
    }
)


def tick(
    place: AppPlace,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")],
    scheduled_time: Annotated[
        str | None, typer.Option(help="The platform's planned time: ISO 8601 with an offset, or epoch milliseconds.")
    ] = None,
    manual: Annotated[bool, typer.Option("--manual", help="Fire once now, beside the plan.")] = False,
    register: Annotated[
        bool,
        typer.Option(
            "--register",
            help="First put this code's schedules in force, unless a worker runs: for apps without workers.",
        ),
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Wait for the job's end; exit 1 unless it completed. 0 to 2592000.",
            min=0,
            max=WAIT_MAX,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fire one tick of a schedule and return after commit. A tick delivered again is a duplicate, and exits 0."""
    at = None if scheduled_time is None else read_instant(scheduled_time)
    if manual and register:
        raise InvalidInputError("--manual fires what is in force.", remedy="Leave out --register.", path="--register")
    if manual and at is not None:
        raise InvalidInputError("--manual fires now.", remedy="Leave out --scheduled-time.", path=_OPTION)
    if wait is not None:
        require_within("--wait", wait, 0, WAIT_MAX)
    done = with_open_app(place, lambda app: _tick(app, name, at, manual=manual, register=register, wait=wait))
    if as_json:
        print_json(done.to_json())
    else:
        print_line(done.sentence())
    if not done.is_good(waited=wait is not None):
        raise typer.Exit(ExitCode.FAILED)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a tick and, where it was waited for, of its job."""

    record: FireRecord
    planned: str
    job: Job | None

    def is_good(self, *, waited: bool) -> bool:
        """Tell whether the clock has nothing to repeat and nobody anything to repair."""
        if waited and self.record.outcome is FireOutcome.FIRED:
            return self.job is not None and self.job.state is JobState.COMPLETED
        return self.record.outcome in _HANDLED

    def sentence(self) -> str:
        """Return the answer for people."""
        text = f"{self.record.schedule} at {self.planned}: {self.record.outcome.value.replace('_', ' ')}"
        text += f", {self.record.reason}" if self.record.reason else ""
        text += f", job {self.record.job_id}" if self.record.job_id else ""
        if self.job is not None:
            text += f" {self.job.state}" + (f": {self.job.error}" if self.job.error else "")
        return text

    def to_json(self) -> dict[str, object]:
        """Return the answer for programs."""
        return {
            "schedule": self.record.schedule,
            "scheduled_at": self.record.planned_at,
            "outcome": self.record.outcome,
            "duplicate": self.record.outcome is FireOutcome.DUPLICATE,
            "reason": self.record.reason,
            "job_id": self.record.job_id,
            "job_state": self.job.state if self.job else None,
            "error": self.job.error if self.job else None,
        }


def read_instant(text: str) -> datetime:
    """Return an instant from ISO 8601 or epoch milliseconds. Raises InvalidInputError."""
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX:
        return to_datetime(int(text), name=_OPTION)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        remedy = "Write it as 2026-03-08T09:00:00Z, or as epoch milliseconds."
        message = f"{_OPTION} is {text[:_SHOWN_MAX]!r}, not an instant."
        raise InvalidInputError(message, remedy=remedy, path=_OPTION) from error
    if at.tzinfo is None:
        message = f"{_OPTION} {text} has no offset from UTC, so it names no instant."
        raise InvalidInputError(message, remedy="Add Z or an offset as in +09:00.", path=_OPTION)
    return to_datetime(to_epoch_ms(at, name=_OPTION), name=_OPTION)


async def _tick(
    app: Kizami, name: str, at: datetime | None, *, manual: bool, register: bool, wait: float | None
) -> Done:
    record = await app.schedules.tick(name, at, manual=manual, by="command line", register=register)
    zone = app.zone_of(name)
    planned = format_local(record.planned_at, zone) if zone else str(to_datetime(record.planned_at))
    if record.outcome is not FireOutcome.FIRED or record.job_id is None:
        return Done(record, planned, None)
    binding = (await app.schedules.get(name)).binding
    if not any(binding in worker.bindings for worker in await app.store.workers.list(app.name)):
        notice(f"No worker for {binding} is registered: the job waits until one runs (kizami run).")
    return Done(record, planned, None if wait is None else await wait_for_end(app, record.job_id, wait))
