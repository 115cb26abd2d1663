"""What a route is given: the app it serves, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from kizami.app.app import Kizami
from kizami.core.errors import NotFoundError
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
