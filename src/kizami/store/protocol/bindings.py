"""Bindings: what workers declare of them, what operators change at run time, and how they are doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kizami.core.dispatch import Wait
from kizami.core.policy import Policy, PolicyChanges, Retention
from kizami.core.times import EpochMs


@dataclass(frozen=True, slots=True)
class BindingDeclaration:
    """What code says of a binding; `payload_schema` is the JSON Schema of its payload, as text."""

    name: str
    policy: Policy = field(default_factory=Policy)
    retention: Retention = field(default_factory=Retention)
    shards: int = 1
    requires_concurrency_key: bool = False
    requires_unique_key: bool = False
    payload_schema: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A stored binding. `override` is what operators changed of its policy (None: nothing)."""

    app: str
    declared: BindingDeclaration
    declared_at: EpochMs
    override: PolicyChanges | None = None
    paused_at: EpochMs | None = None

    @property
    def name(self) -> str:
        """Return the binding's name."""
        return self.declared.name

    @property
    def policy(self) -> Policy:
        """Return the policy in force: the declared one, with the override laid over it."""
        return self.declared.policy if self.override is None else self.declared.policy.changed(self.override)


@dataclass(frozen=True, slots=True)
class BindingDiagnostics:
    """How a binding is doing, over all its shards.

    `waiting` counts its unstarted jobs by what they wait for (`kizami.core.dispatch.diagnose`). `oldest_due_at` is when
    the first of its ready jobs in order first became due, None when there are none: a growing age with WORKER waits
    means that no worker performs this binding.
    """

    binding: Binding
    active: int
    waiting: Mapping[Wait, int]
    oldest_due_at: EpochMs | None


class BindingStore(Protocol):
    """Operations on bindings."""

    async def declare(self, app: str, declarations: Sequence[BindingDeclaration]) -> None:
        """Store what code says of its bindings; override and pause stay. Equal declarations write nothing.

        Called by workers at start; a new job may bring the declaration of a binding that isn't stored yet. A changed
        aging or per_key_concurrency re-keys the outstanding jobs, in bounded batches at later claims. Raises
        WrongStateError when the number of shards would change while jobs are outstanding (their ids and limits live in
        the old shards); reservations move along.
        """
        ...

    async def get(self, app: str, name: str) -> Binding | None:
        """Return one binding."""
        ...

    async def list(self, app: str) -> tuple[Binding, ...]:
        """Return the bindings of an app by name."""
        ...

    async def configure(self, app: str, name: str, override: PolicyChanges | None) -> Binding:
        """Replace the override of a binding's policy, None takes it back. In force from the next claim on.

        Raises NotFoundError, DefinitionError.
        """
        ...

    async def pause(self, app: str, name: str) -> Binding:
        """Start no more of its jobs; they queue up. Pausing twice is harmless. Raises NotFoundError."""
        ...

    async def resume(self, app: str, name: str) -> Binding:
        """Start its jobs again. Raises NotFoundError."""
        ...

    async def diagnose(self, app: str) -> tuple[BindingDiagnostics, ...]:
        """Return how each binding of an app is doing, by name."""
        ...
