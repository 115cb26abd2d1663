"""What people do with deliveries, on an open app."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.store.protocol import Delivery, DeliveryStore


class Deliveries:
    """What an app owes to its channels, and has delivered."""

    def __init__(self, app: str, store: DeliveryStore) -> None:
        self._app = app
        self._store = store

    async def list(self, channel: str | None = None, state: str | None = None, limit: int = 50) -> tuple[Delivery, ...]:
        """Return deliveries, newest first; `state` is owed, delivered, in_doubt, set_aside or None for all."""
        return await self._store.list(self._app, channel, state, limit)

    async def requeue(self, channel: str, item: str | None = None) -> int:
        """Owe what was set aside again, one item or all of a channel's, due from now on; return how many.

        What is in doubt is looked for before it is posted. Raises NotFoundError for a channel or item that isn't
        there, WrongStateError for an item that isn't set aside.
        """
        return await self._store.requeue(self._app, channel, item)
