"""The dashboard's pages, and the buttons on them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from kizami.core.errors import InvalidInputError
from kizami.core.states import ENDED, JobState, may_move
from kizami.store.protocol import JobFilter
from kizami.web.current import App, Asking, JobsCounted, acted_by, job_or_404
from kizami.web.look import Look
from kizami.web.timeline import strokes
from kizami.web.views import lateness_ms, stats_of, zone_of

router = APIRouter()
_JOBS_ON_A_PAGE = 50
_LEDGER_LINES = 50
_UPCOMING = 8
_DELIVERIES_ON_A_PAGE = 100
_DELIVERY_STATES = ("owed", "delivered", "in_doubt", "set_aside")


@router.get("/")
async def overview(request: Request, app: App, counts: JobsCounted) -> Response:
    """Show at a glance whether everything goes as planned."""
    return _page(
        request,
        "overview.html",
        stats=await stats_of(app, counts),
        schedules=await _schedules(app),
        boards=await app.store.boards.list(app.name),
        gates=await app.store.gates.closed(app.name),
        workers=await app.store.workers.list(app.name),
        leases=await app.store.leases.list(app.name),
        now=await app.store.schedules.now(),
        states=tuple(JobState),
    )


@router.get("/schedules")
async def schedules(request: Request, app: App) -> Response:
    """Show every schedule with its plan and its counts."""
    return _page(request, "schedules.html", schedules=await _schedules(app), now=await app.store.schedules.now())


@router.get("/schedules/{name}")
async def schedule(request: Request, app: App, name: str) -> Response:
    """Show one schedule, its next planned times and its fire ledger."""
    found = await app.schedules.get(name)
    now = await app.store.schedules.now()
    return _page(
        request,
        "schedule.html",
        schedule=found,
        zone=zone_of(found.timing).name,
        lateness=lateness_ms(found),
        strokes=strokes(found, now),
        upcoming=() if found.broken else await app.schedules.preview(name, _UPCOMING),
        ledger=await app.schedules.ledger(name, _LEDGER_LINES),
        now=now,
    )


@router.post("/schedules/{name}/pause")
async def pause(request: Request, app: App, name: str) -> Response:
    """Stop a schedule's fires."""
    await app.schedules.pause(name)
    return _back(request, f"/schedules/{name}")


@router.post("/schedules/{name}/resume")
async def resume(request: Request, app: App, name: str) -> Response:
    """Let a schedule fire again."""
    await app.schedules.resume(name)
    return _back(request, f"/schedules/{name}")


@router.post("/schedules/{name}/trigger")
async def trigger(request: Request, app: App, name: str, asking: Asking) -> Response:
    """Fire a schedule once now."""
    await app.schedules.trigger(name, by=acted_by(asking))
    return _back(request, f"/schedules/{name}")


@router.get("/jobs")
async def jobs(
    request: Request,
    app: App,
    *,
    state: str = "",
    binding: str = "",
    schedule: str = "",
    cursor: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Show jobs, newest first; an empty filter is none."""
    wanted = JobFilter(app.name, _states(state), binding or None, schedule or None, cursor or None, _JOBS_ON_A_PAGE)
    return _page(
        request,
        "jobs.html",
        page=await app.jobs.list(wanted),
        filters={"state": state, "binding": binding, "schedule": schedule},
        bindings=await _bindings(app),
        schedules=[one.name for one in await app.schedules.list()],
        states=tuple(JobState),
        first=not cursor,
        now=await app.store.schedules.now(),
    )


@router.get("/jobs/{job_id}")
async def job(request: Request, app: App, job_id: str) -> Response:
    """Show one job: payload, result, attempts, and what can be done with it."""
    found = await job_or_404(app, job_id)
    return _page(
        request,
        "job.html",
        job=found,
        ended=found.state in ENDED,
        may_retry=may_move(found.state, JobState.SCHEDULED) and found.state in ENDED,
        may_cancel=may_move(found.state, JobState.CANCELLED),
        now=await app.store.schedules.now(),
    )


@router.post("/jobs/{job_id}/retry")
async def retry(request: Request, app: App, job_id: str) -> Response:
    """Schedule a job again."""
    await app.jobs.retry(job_id)
    return _back(request, f"/jobs/{job_id.replace('#', '%23')}")


@router.post("/jobs/{job_id}/cancel")
async def cancel(request: Request, app: App, job_id: str) -> Response:
    """Cancel a job that waits."""
    await app.jobs.cancel(job_id)
    return _back(request, f"/jobs/{job_id.replace('#', '%23')}")


@router.get("/deliveries")
async def deliveries(request: Request, app: App, channel: str = "", state: str = "") -> Response:
    """Show deliveries, newest first, and how many there are per channel."""
    if state and state not in _DELIVERY_STATES:
        raise InvalidInputError(f"{state!r} is no state of a delivery.", remedy="Choose one of the list.", path="state")
    return _page(
        request,
        "deliveries.html",
        deliveries=await app.store.deliveries.list(app.name, channel or None, state or None, _DELIVERIES_ON_A_PAGE),
        counts=await app.store.deliveries.counts(app.name),
        filters={"channel": channel, "state": state},
        states=_DELIVERY_STATES,
        now=await app.store.schedules.now(),
    )


@router.get("/boards")
async def boards(request: Request, app: App) -> Response:
    """Show the boards and how fresh they are."""
    return _page(
        request,
        "boards.html",
        boards=await app.store.boards.list(app.name),
        gates=await app.store.gates.closed(app.name),
        now=await app.store.schedules.now(),
    )


async def _schedules(app: App) -> list[dict[str, Any]]:
    """Return each schedule with what its row shows beside what is stored."""
    now = await app.store.schedules.now()
    return [
        {
            "schedule": one,
            "zone": zone_of(one.timing).name,
            "lateness": lateness_ms(one),
            "strokes": strokes(one, now),
        }
        for one in await app.schedules.list()
    ]


async def _bindings(app: App) -> list[str]:
    """Return the bindings that code, schedules and workers know of; those of stored jobs would have to be counted."""
    scheduled = {one.binding for one in await app.schedules.list()}
    worked = {binding for worker in await app.store.workers.list(app.name) for binding in worker.bindings}
    return sorted(scheduled.union(worked, app.performers))


def _states(state: str) -> tuple[JobState, ...]:
    try:
        return (JobState(state),) if state else ()
    except ValueError as error:
        raise InvalidInputError(
            f"{state!r} is no state of a job.", remedy="Choose one of the list.", path="state"
        ) from error


def _page(request: Request, template: str, **values: Any) -> Response:
    look: Look = request.app.state.look
    return look.page(request.scope, template, **values)


def _back(request: Request, page: str) -> Response:
    """Show the page that the button is on, asked for with GET, so that a reload acts on nothing."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{page}", status_code=303)
