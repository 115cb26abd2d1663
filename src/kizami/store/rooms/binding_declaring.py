"""Storing what code says of its bindings, and what follows for jobs and reservations that are there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kizami.core.errors import NotFoundError, WrongStateError
from kizami.core.sharding import shard_of
from kizami.store.rooms.binding_rows import binding, declaration_values
from kizami.store.statements import load

if TYPE_CHECKING:
    from kizami.store.protocol import Binding, BindingDeclaration
    from kizami.store.transaction import Moment, Transaction

SQL: Final = load("bindings")


def get(transaction: Transaction, app: str, name: str) -> Binding | None:
    """Return a stored binding."""
    row = transaction.execute(SQL["one"], {"app": app, "name": name}).fetchone()
    return None if row is None else binding(row)


def require(transaction: Transaction, app: str, name: str) -> Binding:
    """Return a stored binding. Raises NotFoundError."""
    found = get(transaction, app, name)
    if found is None:
        raise NotFoundError(
            f"App {app} has no binding {name}.",
            remedy="Start a worker that defines it, or correct the name.",
            binding=name,
        )
    return found


def declare(transaction: Transaction, moment: Moment, app: str, declaration: BindingDeclaration) -> None:
    """Store a declaration; override and pause stay. Raises WrongStateError, see `BindingStore.declare`."""
    before = get(transaction, app, declaration.name)
    if before is not None and before.declared.shards != declaration.shards:
        _refuse_outstanding(transaction, before, declaration.shards)
    transaction.execute(SQL["declare"], declaration_values(app, declaration, moment.now))
    where: dict[str, Any] = {"app": app, "name": declaration.name}
    for shard in range(declaration.shards):
        transaction.execute(SQL["add_shard"], where | {"shard": shard})
    if before is None:
        return
    if before.declared.shards != declaration.shards:
        _move_reservations(transaction, moment, where, declaration.shards)
    rekey_if_reordered(transaction, before, require(transaction, app, declaration.name))


def _refuse_outstanding(transaction: Transaction, before: Binding, shards: int) -> None:
    where = {"app": before.app, "name": before.name}
    (outstanding,) = transaction.execute(SQL["outstanding"], where).fetchone()
    if outstanding:
        raise WrongStateError(
            f"Binding {before.name} has {outstanding} outstanding jobs in {before.declared.shards} shards, so it can't"
            f" be divided into {shards}.",
            remedy="Let them end first, or use a new binding for the new number: a key would count in two shards.",
            binding=before.name,
            outstanding=outstanding,
        )


def _move_reservations(transaction: Transaction, moment: Moment, where: dict[str, Any], shards: int) -> None:
    """Put each living reservation where an enqueue with its key looks from now on: its key is the partition_key too."""
    numbers = {row["shard"]: row["shard_key"] for row in transaction.execute(SQL["shards"], where)}
    rows = transaction.execute(SQL["reservations"], where | {"now": moment.now}).fetchall()
    transaction.execute(SQL["forget_reservations"], where)
    for row in rows:
        there = numbers[shard_of(row["unique_key"], shards)]
        transaction.execute(SQL["reserve_again"], dict(row) | {"shard_key": there})


def rekey_if_reordered(transaction: Transaction, before: Binding, after: Binding) -> None:
    """Have claims work a policy into outstanding jobs that changes their order, or frees places of their keys."""
    old, new = before.policy, after.policy
    if (old.aging_ms, old.per_key_concurrency) != (new.aging_ms, new.per_key_concurrency):
        transaction.execute(SQL["rekey"], {"app": after.app, "name": after.name})
