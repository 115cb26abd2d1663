"""What people do with bindings, on an open app: see how they are doing, change limits, pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from kizami.app.binding import refuse_short_grace
from kizami.core.errors import NotFoundError
from kizami.core.policy import PolicyChanges

if TYPE_CHECKING:
    from kizami.engine.settings import WorkerSettings
    from kizami.store.protocol import Binding, BindingDiagnostics, BindingStore


class Bindings:
    """An app's stored bindings."""

    def __init__(self, app: str, store: BindingStore, settings: WorkerSettings) -> None:
        self._app = app
        self._store = store
        self._settings = settings

    async def list(self) -> tuple[Binding, ...]:
        """Return the bindings by name."""
        return await self._store.list(self._app)

    async def get(self, name: str) -> Binding:
        """Return one binding. Raises NotFoundError."""
        found = await self._store.get(self._app, name)
        if found is None:
            raise NotFoundError(
                f"App {self._app} has no binding {name}.", remedy="Start a worker that defines it.", binding=name
            )
        return found

    async def configure(self, name: str, **changes: Unpack[PolicyChanges]) -> Binding:
        """Lay these changes over the declared policy, at once and for all workers; none takes an override back.

        What an earlier override changed and this one doesn't name is as declared again. Raises NotFoundError and
        DefinitionError, also for a reaper_grace in which a worker of these settings gives no sign of life.
        """
        if "reaper_grace" in changes:
            after = (await self.get(name)).declared.policy.changed(changes)
            refuse_short_grace(f"Binding {name}", after, self._settings)
        return await self._store.configure(self._app, name, changes or None)

    async def pause(self, name: str) -> Binding:
        """Start no more of its jobs; they queue up. Raises NotFoundError."""
        return await self._store.pause(self._app, name)

    async def resume(self, name: str) -> Binding:
        """Start its jobs again. Raises NotFoundError."""
        return await self._store.resume(self._app, name)

    async def diagnose(self) -> tuple[BindingDiagnostics, ...]:
        """Return, per binding, how many jobs are active and what the others wait for."""
        return await self._store.diagnose(self._app)
