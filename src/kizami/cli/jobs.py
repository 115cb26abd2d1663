"""`kizami jobs`: look at jobs, retry and cancel them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kizami.cli.group import Group
from kizami.cli.loading import AppPlace
from kizami.cli.opened import with_open_app
from kizami.cli.printing import AsJson, notice, print_facts, print_json, print_line, print_table
from kizami.core.errors import NotFoundError
from kizami.core.states import JobState
from kizami.core.times import format_local
from kizami.core.zone import load_zone
from kizami.store.protocol import JobFilter

if TYPE_CHECKING:
    from kizami.app.app import Kizami
    from kizami.core.zone import TimeZone
    from kizami.store.protocol import Job

jobs = typer.Typer(cls=Group, help="Look at jobs; retry and cancel them.", no_args_is_help=True)
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job's id, as `kizami jobs list` shows it.")]
LIMIT_MAX = 200
_INSTANTS = frozenset({"due_at", "created_at", "started_at", "ended_at"})
_SHOWN_APART = frozenset({"attempts", "origin", "backoff"})


@jobs.command("list")
def list_some(
    place: AppPlace,
    state: Annotated[
        list[JobState] | None, typer.Option(help="Only jobs in this state; may be repeated.", case_sensitive=False)
    ] = None,
    binding: Annotated[str | None, typer.Option(help="Only jobs of this binding.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Only jobs of this schedule's ticks.")] = None,
    before: Annotated[str | None, typer.Option(help="The cursor that an earlier page gave.")] = None,
    limit: Annotated[int, typer.Option(help="How many jobs.", min=1, max=LIMIT_MAX)] = 50,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    wanted = JobFilter("", tuple(state or ()), binding, schedule, before, limit)
    page = with_open_app(place, lambda app: app.jobs.list(wanted))
    if as_json:
        print_json({"jobs": [_as_json(job) for job in page.jobs], "next_cursor": page.next_cursor})
        return
    utc = load_zone("UTC")
    rows = [
        (job.job_id, job.state, f"{job.attempt}/{job.attempts_allowed}", format_local(job.created_at, utc), job.error)
        for job in page.jobs
    ]
    print_table(("job", "state", "attempt", "created", "error"), rows, "No such jobs.")
    if page.next_cursor:
        notice(f"More: --before {page.next_cursor}")


@jobs.command()
def show(place: AppPlace, job_id: JobId, as_json: AsJson = False) -> None:
    """Show one job with its attempts, in its schedule's local time."""
    job, zone = with_open_app(place, lambda app: _found(app, job_id))
    if as_json:
        print_json(_as_json(job))
        return
    facts = [(name, _shown(name, value, zone)) for name, value in asdict(job).items() if name not in _SHOWN_APART]
    origin = job.origin and f"{job.origin.schedule} at {format_local(job.origin.scheduled_at, zone)}"
    print_facts([*facts, ("tick", origin)])
    if job.attempts:
        print_line("")
        rows = [(one.attempt, one.outcome, format_local(one.ended_at, zone), one.error) for one in job.attempts]
        print_table(("attempt", "outcome", "ended", "error"), rows, "")


@jobs.command()
def retry(place: AppPlace, job_id: JobId) -> None:
    """Schedule a FAILED or STALLED job again."""
    with_open_app(place, lambda app: app.jobs.retry(job_id))
    print_line(f"{job_id}: scheduled again")


@jobs.command()
def cancel(place: AppPlace, job_id: JobId) -> None:
    """Cancel a job that is still SCHEDULED."""
    with_open_app(place, lambda app: app.jobs.cancel(job_id))
    print_line(f"{job_id}: cancelled")


async def _found(app: Kizami, job_id: str) -> tuple[Job, TimeZone]:
    job = await app.jobs.get(job_id)
    if job is None:
        raise NotFoundError(f"There is no job {job_id} in app {app.name}.", remedy="`kizami jobs list` lists them.")
    zone = app.zone_of(job.origin.schedule) if job.origin else None
    return job, zone or load_zone("UTC")


def _shown(name: str, value: object, zone: TimeZone) -> object:
    return format_local(value, zone) if name in _INSTANTS and isinstance(value, int) else value


def _as_json(job: Job) -> dict[str, Any]:
    result = None if job.result is None else json.loads(job.result)
    return asdict(job) | {"payload": json.loads(job.payload), "result": result}
