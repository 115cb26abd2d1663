"""What a route is given: the app it serves, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.routing import APIRoute

from kizami.app.app import Kizami
from kizami.core.errors import InvalidInputError, NotFoundError
from kizami.web.auth import Identity, Role
from kizami.web.counts import Counts
from kizami.web.gate import identity_of

if TYPE_CHECKING:
    from kizami.store.protocol import Job


def _app(request: Request) -> Kizami:
    app: Kizami = request.app.state.kizami
    return app


def _counts(request: Request) -> Counts:
    counts: Counts = request.app.state.counts
    return counts


def _identity(request: Request) -> Identity:
    """Return who asks; the gate has let nobody pass whom it doesn't know, and what it doesn't know can't act."""
    return identity_of(request.scope) or Identity(Role.VIEWER)


App = Annotated[Kizami, Depends(_app)]
JobsCounted = Annotated[Counts, Depends(_counts)]
Asking = Annotated[Identity, Depends(_identity)]


async def job_or_404(app: Kizami, job_id: str) -> Job:
    """Return a job with its attempt log. Raises NotFoundError, InvalidInputError for what is no job id."""
    job = await app.jobs.get(job_id)
    if job is None:
        raise NotFoundError(f"There is no job {job_id}.", remedy="It never was, or its retention has passed.")
    return job


def acted_by(identity: Identity) -> str:
    """Return what the fire ledger says of who asked."""
    return f"web ({identity.role})"


def require_known_query(request: Request) -> None:
    """Refuse a query that names what the route doesn't take: a filter with a typing error would filter nothing."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = sorted(field.alias for field in route.dependant.query_params)
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        remedy = f"Known: {', '.join(known)}." if known else "This address takes none."
        raise InvalidInputError(
            f"There is no query parameter {unknown[:100]!r} here.", remedy=remedy, path=unknown[:100]
        )
