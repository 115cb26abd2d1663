"""What people do with status boards, on an open app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kizami.core.errors import NotFoundError, WrongStateError

if TYPE_CHECKING:
    from kizami.store.protocol import BoardRow, BoardStore


class Boards:
    """The status boards that an app has published."""

    def __init__(self, app: str, store: BoardStore) -> None:
        self._app = app
        self._store = store

    async def list(self) -> tuple[BoardRow, ...]:
        """Return the boards by name and channel."""
        return await self._store.list(self._app)

    async def switch_on(self, channel: str, name: str) -> None:
        """Let a board that is off be published again at its next tick, instead of within an hour.

        Raises NotFoundError for a board that isn't there, WrongStateError for one that isn't off.
        """
        if await self._store.switch_on(self._app, name, channel):
            return
        if any((board.channel, board.name) == (channel, name) for board in await self.list()):
            raise WrongStateError(
                f"Board {name} in {channel} is not off.", remedy="Its note, in `kizami boards list`, says how it is."
            )
        raise NotFoundError(
            f"There is no board {name} in {channel} in app {self._app}.", remedy="`kizami boards list` lists them."
        )
