"""Bindings: what code declares, what operators lay over it, and how each is doing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kizami.core.dispatch import Piles, Wait, diagnose
from kizami.core.policy import encode_changes
from kizami.store.protocol import BindingDiagnostics
from kizami.store.protocol.store import Topic
from kizami.store.rooms.binding_declaring import declare, get, rekey_if_reordered, require
from kizami.store.rooms.binding_rows import binding, policy_of, shard_view
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.policy import PolicyChanges
    from kizami.store.protocol import Binding, BindingDeclaration
    from kizami.store.transaction import Database, Moment, Transaction

SQL: Final = load("bindings")


class BindingRoom:
    """Operations on bindings; see `BindingStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def declare(self, app: str, declarations: Sequence[BindingDeclaration]) -> None:
        """Store what code says of its bindings; equal declarations only read."""
        changed = await self._database.read(lambda transaction, _: _changed(transaction, app, declarations))
        if not changed:
            return

        def operation(transaction: Transaction, moment: Moment) -> None:
            for declaration in _changed(transaction, app, declarations):
                declare(transaction, moment, app, declaration)

        await self._database.write(operation)
        self._database.announce(Topic.OTHER)

    async def get(self, app: str, name: str) -> Binding | None:
        """Return one binding."""
        return await self._database.look(lambda transaction, _: get(transaction, app, name))

    async def list(self, app: str) -> tuple[Binding, ...]:
        """Return the bindings of an app by name."""
        return await self._database.look(
            lambda transaction, _: tuple(map(binding, transaction.execute(SQL["listed"], {"app": app}))),
        )

    async def configure(self, app: str, name: str, override: PolicyChanges | None) -> Binding:
        """Replace the override of a binding's policy."""

        def operation(transaction: Transaction, _: Moment) -> Binding:
            before = require(transaction, app, name)
            before.declared.policy.changed(override or {})  # refused here rather than in the next claim
            text = None if override is None else encode_changes(override)
            transaction.execute(SQL["override"], {"app": app, "name": name, "override": text})
            after = require(transaction, app, name)
            rekey_if_reordered(transaction, before, after)
            return after

        return await self._change(operation)

    async def pause(self, app: str, name: str) -> Binding:
        """Start no more of its jobs."""
        return await self._change(lambda transaction, moment: _run(transaction, moment, "pause", app, name))

    async def resume(self, app: str, name: str) -> Binding:
        """Start its jobs again."""
        return await self._change(lambda transaction, moment: _run(transaction, moment, "resume", app, name))

    async def diagnose(self, app: str) -> tuple[BindingDiagnostics, ...]:
        """Return how each binding of an app is doing."""
        return await self._database.look(lambda transaction, moment: _diagnose(transaction, moment, app))

    async def _change(self, operation: Any) -> Binding:
        changed: Binding = await self._database.write(operation)
        self._database.announce(Topic.OTHER)
        return changed


def _run(transaction: Transaction, moment: Moment, statement: str, app: str, name: str) -> Binding:
    transaction.execute(SQL[statement], {"app": app, "name": name, "now": moment.now})
    return require(transaction, app, name)


def _changed(
    transaction: Transaction, app: str, declarations: Sequence[BindingDeclaration]
) -> list[BindingDeclaration]:
    stored = {row["name"]: binding(row).declared for row in transaction.execute(SQL["listed"], {"app": app})}
    return [declaration for declaration in declarations if stored.get(declaration.name) != declaration]


def _diagnose(transaction: Transaction, moment: Moment, app: str) -> tuple[BindingDiagnostics, ...]:
    waiting: dict[str, Counter[Wait]] = {}
    active: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for row in transaction.execute(SQL["piles"], {"app": app, "now": moment.now}).fetchall():
        name = row["binding"]
        view = shard_view(row, moment, policy_of(row))
        active[name] += view.active
        waits = diagnose(view, Piles(row["waiting"] - row["due"], row["ready"] + row["due"], row["blocked"]))
        waiting.setdefault(name, Counter()).update(waits)
        for statement in ("first_ready", "first_due"):
            values = {"shard_key": row["shard_key"], "now": moment.now}
            first = transaction.execute(SQL[statement], values).fetchone()
            if first is not None:
                oldest[name] = min(oldest.get(name, first[0]), first[0])
    bindings = [binding(row) for row in transaction.execute(SQL["listed"], {"app": app})]
    return tuple(
        BindingDiagnostics(one, active[one.name], dict(waiting.get(one.name, Counter())), oldest.get(one.name))
        for one in bindings
    )
