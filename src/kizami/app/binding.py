"""What a performer declares of its binding: policy, retention, shards and required keys, checked at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import DefinitionError
from kizami.core.policy import Policy, Retention
from kizami.core.sharding import SHARDS_MAX
from kizami.store.protocol import BindingDeclaration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kizami.engine.settings import WorkerSettings

_OF_EACH_JOB: Final = frozenset({"concurrency_key", "unique_key", "partition_key"})
_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "policy": (Policy, "a kizami.Policy"),
    "retention": (Retention, "a kizami.Retention"),
    "shards": (int, f"a whole number from 1 to {SHARDS_MAX}"),
    "requires_concurrency_key": (bool, "True or False"),
    "requires_unique_key": (bool, "True or False"),
}


def split_declaration(
    binding: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[BindingDeclaration, dict[str, Any]]:
    """Separate what is said of a binding from the options of its jobs. Raises DefinitionError naming the field."""
    said = {name: value for name, value in options.items() if name in _KINDS}
    for name, value in said.items():
        _check(f"Performer {binding}", name, value)
    for name in _OF_EACH_JOB.intersection(options):
        raise DefinitionError(
            f"Performer {binding}: {name} is not the performer's.", remedy="Give it with each enqueue.", field=name
        )
    rest = {name: value for name, value in options.items() if name not in _KINDS}
    return BindingDeclaration(binding, **(dict(defaults) | said)), rest


def refuse_short_grace(owner: str, policy: Policy, settings: WorkerSettings) -> None:
    """Raise DefinitionError when jobs could be taken before their worker's next sign of life."""
    least_ms = min(settings.vouch_ms, settings.grace_ms)
    if policy.grace_ms < least_ms:
        least, grace = timedelta(milliseconds=least_ms), policy.reaper_grace
        raise DefinitionError(
            f"{owner}: reaper_grace {grace} is shorter than the time between a worker's signs of life, {least}.",
            remedy=f"Give at least {least}, or a smaller vouch_ms in WorkerSettings.",
            field="reaper_grace",
        )


def _check(owner: str, name: str, value: object) -> None:
    kind, wanted = _KINDS[name]
    fits = isinstance(value, kind) and (kind is not int or (type(value) is int and 1 <= value <= SHARDS_MAX))
    if not fits:
        raise DefinitionError(f"{owner}: {name} is {value!r}.", remedy=f"Give {wanted}.", field=name)
