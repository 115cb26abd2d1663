"""Which shard a key belongs to, for ever, and what a sharded binding refuses."""

from __future__ import annotations

import pytest

from kizami.core.errors import InvalidInputError
from kizami.core.options import JobOptions
from kizami.core.sharding import place, shard_of
from kizami.store.protocol import BindingDeclaration

FOUR = BindingDeclaration("send", shards=4)


@pytest.mark.parametrize(("key", "shard"), [("a", 10), ("customer-1", 7), ("Ωmega 刻み", 5)])
def test_the_hash_never_changes(key: str, shard: int) -> None:
    """Stored jobs were placed by it: these values are for ever."""
    assert shard_of(key, 16) == shard


def test_keys_spread_over_all_shards() -> None:
    counts = [0] * 8
    for number in range(8_000):
        counts[shard_of(f"customer-{number}", 8)] += 1
    assert min(counts) > 850


def test_one_shard_takes_any_keys() -> None:
    options = JobOptions(concurrency_key="a", unique_key="b", partition_key="c")
    assert place(BindingDeclaration("send"), options) == 0
    assert place(BindingDeclaration("send"), JobOptions()) == 0


def test_the_keys_of_a_sharded_job_are_its_partition_key() -> None:
    options = JobOptions(concurrency_key="a", unique_key="a", partition_key="a")
    assert place(FOUR, options) == shard_of("a", 4)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (JobOptions(), "partition_key"),
        (JobOptions(concurrency_key="b", partition_key="a"), "concurrency_key"),
        (JobOptions(unique_key="b", partition_key="a"), "unique_key"),
    ],
)
def test_a_key_that_could_be_held_in_two_shards_is_refused(options: JobOptions, path: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        place(FOUR, options)
    assert refused.value.facts["path"] == path


@pytest.mark.parametrize("name", ["concurrency_key", "unique_key"])
def test_a_required_key_that_is_missing_is_refused(name: str) -> None:
    declared = BindingDeclaration("send", **{f"requires_{name}": True})  # type: ignore[arg-type]  # a name is no literal for mypy
    with pytest.raises(InvalidInputError, match=f"has no {name}"):
        place(declared, JobOptions())
