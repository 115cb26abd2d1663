"""What `Kizami.running` returns: entered with `async with`, and with nothing else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NoReturn

from kizami.core.errors import DefinitionError

if TYPE_CHECKING:
    from types import TracebackType

    from kizami.app.app import Kizami


class Running(AbstractAsyncContextManager["Kizami", None]):
    """An app that runs while the body does. Other ways to enter it raise DefinitionError with the right one."""

    def __init__(self, app: str, entered: AbstractAsyncContextManager[Kizami]) -> None:
        self._app = app
        self._entered = entered

    async def __aenter__(self) -> Kizami:
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:  # a type checker finds these mistakes by itself

        def __enter__(self) -> NoReturn:
            self._refuse("entered with `with`")

        def __exit__(self, *_: object) -> None:
            """Complete what Python takes for a context manager; never reached."""

        def __await__(self) -> NoReturn:
            self._refuse("awaited")

    def _refuse(self, how: str) -> NoReturn:
        raise DefinitionError(
            f"App {self._app}: running() can't be {how}.",
            remedy="Write `async with app.running():` in an async function.",
        )
