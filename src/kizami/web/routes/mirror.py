"""What the mirror remembers, and who holds and does what: deliveries, boards, leases, workers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from kizami.web.current import App
from kizami.web.shapes import (
    BoardAnswer,
    BoardList,
    DeliveryList,
    LeaseAnswer,
    LeaseList,
    RequeueAnswer,
    RequeueRequest,
    WorkerList,
)
from kizami.web.views import delivery_answer, worker_answer

DeliveryState = Literal["owed", "delivered", "in_doubt", "set_aside"]
router = APIRouter(tags=["mirror"])


@router.get("/deliveries")
async def list_deliveries(
    app: App,
    channel: str | None = None,
    state: DeliveryState | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeliveryList:
    """Return deliveries, newest first."""
    found = await app.deliveries.list(channel, state, limit)
    return DeliveryList(deliveries=tuple(delivery_answer(one) for one in found))


@router.post("/deliveries/requeue")
async def requeue_deliveries(app: App, wanted: RequeueRequest) -> RequeueAnswer:
    """Owe what was set aside again, due from now on; what is in doubt is looked for before it is posted."""
    return RequeueAnswer(requeued=await app.deliveries.requeue(wanted.channel, wanted.item))


@router.get("/boards")
async def list_boards(app: App) -> BoardList:
    """Return the boards by name."""
    found = await app.boards.list()
    return BoardList(boards=tuple(BoardAnswer.model_validate(one) for one in found))


@router.post("/boards/{channel}/{name}/switch-on")
async def switch_board_on(app: App, channel: str, name: str) -> BoardAnswer:
    """Let a board that is off be published at its next tick; by itself it is tried again once an hour."""
    await app.boards.switch_on(channel, name)
    found = next(one for one in await app.boards.list() if (one.channel, one.name) == (channel, name))
    return BoardAnswer.model_validate(found)


@router.get("/leases")
async def list_leases(app: App) -> LeaseList:
    """Return the leases, the free ones too."""
    found = await app.store.leases.list(app.name)
    return LeaseList(leases=tuple(LeaseAnswer.model_validate(one) for one in found))


@router.get("/workers")
async def list_workers(app: App) -> WorkerList:
    """Return the registered workers."""
    found = await app.store.workers.list(app.name)
    return WorkerList(workers=tuple(worker_answer(one) for one in found))
