"""Between the rows of bindings and shards and the records of protocol and core."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kizami.core.bucket import Bucket, bucket_at
from kizami.core.dispatch import ShardView
from kizami.core.policy import Policy, Retention, decode_changes, effective_policy, encode_policy
from kizami.store.protocol import Binding, BindingDeclaration

if TYPE_CHECKING:
    from kizami.store.transaction import Moment, Row


def declaration_values(app: str, declaration: BindingDeclaration, now: int) -> dict[str, Any]:
    """Return the parameters of the statement `declare`."""
    return {
        "app": app,
        "name": declaration.name,
        "shards": declaration.shards,
        "requires_concurrency_key": int(declaration.requires_concurrency_key),
        "requires_unique_key": int(declaration.requires_unique_key),
        "payload_schema": declaration.payload_schema,
        "policy": encode_policy(declaration.policy),
        "completed_ms": declaration.retention.completed_ms,
        "failed_ms": declaration.retention.failed_ms,
        "now": now,
    }


def binding(row: Row) -> Binding:
    """Return a stored binding."""
    declared = BindingDeclaration(
        row["name"],
        effective_policy(row["policy"], None),
        Retention(timedelta(milliseconds=row["completed_ms"]), timedelta(milliseconds=row["failed_ms"])),
        row["shards"],
        bool(row["requires_concurrency_key"]),
        bool(row["requires_unique_key"]),
        row["payload_schema"],
    )
    override = None if row["override"] is None else decode_changes(row["override"])
    return Binding(row["app"], declared, row["declared_at"], override, row["paused_at"])


def policy_of(row: Row) -> Policy:
    """Return the policy in force of a row that has the columns `policy` and `override`."""
    return effective_policy(row["policy"], row["override"])


def shard_view(row: Row, moment: Moment, policy: Policy) -> ShardView:
    """Return what decides about a shard, without its candidates."""
    bucket = None if policy.rate is None else bucket_at(policy.rate, stored_bucket(row), moment.boot, moment.boot_id)
    paused = row["paused_at"] is not None
    return ShardView(row["shard_key"], policy, row["active"], more=row["ready"] > 0, bucket=bucket, paused=paused)


def stored_bucket(row: Row) -> Bucket | None:
    """Return the token bucket as it was last written."""
    if row["bucket_tokens"] is None:
        return None
    return Bucket(
        row["bucket_tokens"], row["bucket_interval_ms"], row["bucket_level"], row["bucket_at"], row["bucket_clock_id"]
    )
