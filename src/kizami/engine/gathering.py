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


_current: ContextVar[weakref.ref[Gathering] | None] = ContextVar("kizami_gathering", default=None)


def gather(delivery: NewDelivery) -> bool:
    """Keep a delivery for the cursor whose loop body the calling code is; False when it is in none."""
    reference = _current.get()
    gathering = reference() if reference else None
    if gathering is None:
        return False
    gathering.deliveries.append(delivery)
    return True


def gather_into(gathering: Gathering | None) -> None:
    """Let what the calling task adds go there from here on; None ends it."""
    _current.set(weakref.ref(gathering) if gathering else None)
