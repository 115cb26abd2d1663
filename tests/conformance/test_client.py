"""A client that has no performers, on both databases: what it enqueues, and what it refuses to store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kizami import Client, DefinitionError, InvalidInputError, Kizami, NotFoundError, PayloadError, StoreError
from kizami.core.sharding import shard_of
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of
from kizami.store.protocol import JobFilter


@dataclass
class Charge:
    order: int
    note: str = ""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'kizami.db'}"
    found: str = request.getfixturevalue("postgres_url")
    migrate(place_of(found))
    return found


def _declared(url: str, name: str = "shop", annotation: Any = Charge) -> None:
    """Store the bindings as a worker does at its start."""
    app = Kizami(name, database_url=url)

    def charge(payload: Any) -> None: ...

    charge.__annotations__["payload"] = annotation
    app.performer(binding="CHARGE")(charge)

    @app.performer(shards=4, requires_unique_key=True)
    def divided(payload: Charge) -> None: ...

    async def start() -> None:
        async with app.running():
            pass

    asyncio.run(start())


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    _declared(url)
    with Client("shop", url) as made:
        yield made


def _count(client: Client) -> int:
    return len(client.jobs.list(JobFilter(client.app)).jobs)


def test_a_job_is_added_by_the_name_of_its_binding(client: Client) -> None:
    job_id = client.enqueue("CHARGE", {"order": 7}, priority=3, unique_key="k")
    again = client.enqueue("CHARGE", Charge(8), unique_key="k")
    job = client.jobs.get(job_id)
    assert job is not None
    assert (job.binding, job.payload, job.priority) == ("CHARGE", '{"order":7}', 3)
    assert (again, again.existing) == (job_id, True)


def test_shards_follow_from_the_partition_key(client: Client) -> None:
    ids = client.enqueue_many(
        client.job("divided", {"order": 1}, partition_key=key, unique_key=key) for key in ("a", "b", "c", "d")
    )
    assert [job_id.partition(":")[0] for job_id in ids] == [f"divided#{shard_of(key, 4)}" for key in "abcd"]


@pytest.mark.parametrize(
    ("binding", "payload", "options", "kind", "words"),
    [
        ("CHARG", {"order": 1}, {}, NotFoundError, "Did you mean CHARGE"),
        ("elsewhere", {"order": 1}, {}, NotFoundError, "It has CHARGE, divided"),
        ("CHARGE", {"order": "seven"}, {}, PayloadError, "doesn't fit at order"),
        ("CHARGE", {}, {}, PayloadError, "'order' is a required property"),
        ("CHARGE", {"order": float("nan")}, {}, PayloadError, "CHARGE"),
        ("CHARGE", {"order": 1}, {"priority": "high"}, DefinitionError, "priority"),
        ("CHARGE", {"order": 1}, {"colour": "red"}, DefinitionError, "unknown option colour"),
        ("divided", {"order": 1}, {"unique_key": "a"}, InvalidInputError, "no partition_key"),
        ("divided", {"order": 1}, {"partition_key": "a"}, InvalidInputError, "no unique_key"),
        ("divided", {"order": 1}, {"partition_key": "a", "unique_key": "b"}, InvalidInputError, "is not its partition"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_of_its_call_is_kept(
    client: Client, binding: str, payload: object, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    requests = [client.job("CHARGE", {"order": 1}), client.job(binding, payload, **options)]
    with pytest.raises(kind, match=words):
        client.enqueue_many(requests)
    assert _count(client) == 0


def test_apps_on_one_database_are_apart(client: Client, url: str) -> None:
    with Client("bakery", url) as other, pytest.raises(NotFoundError, match="App bakery has no binding CHARGE"):
        other.enqueue("CHARGE", {"order": 1})
    assert _count(client) == 0


def test_a_binding_and_a_schema_that_came_later_are_known_at_once(url: str) -> None:
    with Client("shop", url) as client:
        with pytest.raises(NotFoundError, match="none yet"):
            client.enqueue("CHARGE", {"order": 1})
        _declared(url)
        client.enqueue("CHARGE", {"order": 1})
        _declared(url, annotation=dict[str, str])
        client.enqueue("CHARGE", {"order": "seven"})
        assert _count(client) == 2


def test_a_database_that_is_not_there_says_so() -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Client("shop", "sqlite:////nowhere/at/all/kizami.db").enqueue("CHARGE")
