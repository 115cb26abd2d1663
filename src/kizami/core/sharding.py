"""Which shard a job belongs to, and which keys its binding demands."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Protocol

from kizami.core.errors import InvalidInputError

if TYPE_CHECKING:
    from kizami.core.options import JobOptions

SHARDS_MAX: Final = 1_024


class Sharded(Protocol):
    """What a binding says of its shards and keys."""

    @property
    def name(self) -> str:
        """Return the binding's name."""
        ...

    @property
    def shards(self) -> int:
        """Return into how many shards it is divided."""
        ...

    @property
    def requires_concurrency_key(self) -> bool:
        """Tell whether each job must have one."""
        ...

    @property
    def requires_unique_key(self) -> bool:
        """Tell whether each job must have one."""
        ...


def shard_of(partition_key: str, shards: int) -> int:
    """Return the shard of a key: the first 8 bytes of its UTF-8 text's SHA-256, big-endian, modulo the shards.

    This never changes between releases: stored jobs were placed by it.
    """
    return int.from_bytes(hashlib.sha256(partition_key.encode()).digest()[:8], "big") % shards


def place(binding: Sharded, options: JobOptions) -> int:
    """Return the shard of a job. Raises InvalidInputError when its keys don't fit its binding.

    On a binding of several shards the limits hold within each, so a concurrency_key or unique_key that isn't the
    partition_key could be held in two shards at once: that is refused.
    """
    if binding.shards == 1 and not binding.requires_concurrency_key and not binding.requires_unique_key:
        return 0
    _require(binding, "concurrency_key", options.concurrency_key, needed=binding.requires_concurrency_key)
    _require(binding, "unique_key", options.unique_key, needed=binding.requires_unique_key)
    _require(binding, "partition_key", options.partition_key, needed=binding.shards > 1)
    if binding.shards == 1 or options.partition_key is None:
        return 0
    for name, key in (("concurrency_key", options.concurrency_key), ("unique_key", options.unique_key)):
        if key is not None and key != options.partition_key:
            raise InvalidInputError(
                f"Binding {binding.name}: {name} {key!r} is not its partition_key {options.partition_key!r}.",
                remedy=f"It has {binding.shards} shards, and {name} only holds within one: give the same key as both.",
                path=name,
            )
    return shard_of(options.partition_key, binding.shards)


def _require(binding: Sharded, name: str, key: str | None, *, needed: bool) -> None:
    if needed and key is None:
        reason = f"has {binding.shards} shards" if name == "partition_key" else "requires it"
        raise InvalidInputError(
            f"A job of binding {binding.name} has no {name}.", remedy=f"Give one: the binding {reason}.", path=name
        )
