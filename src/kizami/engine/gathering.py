"""Deliveries gathered while a cursor's loop body runs, so that they land in the transaction that moves the cursor."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.store.protocol import NewDelivery


class Gathering:
    """What one loop body has added so far. It lives as long as its loop holds it, so a `break` ends it too."""

    __slots__ = ("__weakref__", "deliveries")

    def __init__(self) -> None:
        self.deliveries: list[NewDelivery] = []


_open: ContextVar[tuple[weakref.ref[Gathering], ...]] = ContextVar("kizami_gatherings", default=())
"""Those of the loops that the code is in, the innermost last."""


def gather(delivery: NewDelivery) -> bool | None:
    """Keep a delivery for the innermost cursor whose loop body the calling code is; None when it is in none.

    False when its item is kept already, for this loop or one around it.
    """
    alive = [gathering for reference in _open.get() if (gathering := reference()) is not None]
    if not alive:
        return None
    key = (delivery.channel, delivery.item)
    if any(key == (kept.channel, kept.item) for gathering in alive for kept in gathering.deliveries):
        return False
    alive[-1].deliveries.append(delivery)
    return True


def begin_gathering() -> Gathering:
    """Let what the calling task adds go to a new gathering from here on."""
    gathering = Gathering()
    _open.set((*(reference for reference in _open.get() if reference() is not None), weakref.ref(gathering)))
    return gathering


def end_gathering(gathering: Gathering) -> None:
    """Let nothing more go there; the loop around it, if there is one, gathers on."""
    _open.set(tuple(reference for reference in _open.get() if reference() not in {None, gathering}))
