"""Enqueueing over HTTP: by the code where it is here, by what workers stored where it isn't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kizami import JobState
from kizami.store.protocol import BindingDeclaration
from tests.unit.web_site import Site, open_site

_SCHEMA = '{"properties":{"order":{"type":"integer"}},"required":["order"],"type":"object"}'


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        stored = BindingDeclaration("elsewhere", shards=4, payload_schema=_SCHEMA)
        await opened.app.store.bindings.declare(opened.app.name, [stored])
        yield opened


async def _add(site: Site, body: dict[str, Any], status: int = 200) -> Any:
    async with site.as_operator() as client:
        answer = await client.post("/api/jobs", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_job_of_a_binding_whose_code_is_elsewhere_is_added(site: Site) -> None:
    body = {"binding": "elsewhere", "payload": {"order": 7}, "partitionKey": "a", "unique_key": "a", "delayMs": 60_000}
    added = await _add(site, {**body, "priority": 3, "timeout_ms": 5_000})
    again = await _add(site, body)
    assert again == {"job_id": added["job_id"], "existing": True, "state": "SCHEDULED"}
    assert (added["existing"], added["state"]) == (False, None)
    job = await site.app.jobs.get(added["job_id"])
    assert job is not None
    assert (job.payload, job.priority, job.timeout_ms, job.state) == ('{"order":7}', 3, 5_000, JobState.SCHEDULED)
    assert job.due_at - job.created_at >= 59_000


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"binding": "elsewher", "payload": {"order": 1}}, 404, "Did you mean elsewhere"),
        ({"binding": "elsewhere", "payload": {"order": "x"}, "partition_key": "a"}, 400, "fit at order"),
        ({"binding": "elsewhere", "payload": {"order": 1}}, 400, "partition_key"),
        ({"binding": "elsewhere", "payload": {"order": 1}, "partition_key": "a", "priority": 2**31}, 400, "priority"),
        ({"binding": "elsewhere", "payload": {"order": 1}, "partition_key": "a", "delay_ms": 10**30}, 400, "delay_ms"),
        ({"binding": "elsewhere", "payload": {"order": 1}, "partition_key": "a", "run_at": 10**30}, 400, "run_at"),
        ({"binding": "elsewhere", "payload": {"order": 1}, "partition_key": "a", "colour": 1}, 400, "colour"),
        ({"payload": {"order": 1}}, 400, "binding"),
    ],
)
async def test_what_does_not_fit_is_refused_by_name(site: Site, body: dict[str, Any], status: int, words: str) -> None:
    assert words in str(await _add(site, body, status))


async def test_a_binding_whose_code_is_here_has_its_performers_type_and_options(site: Site) -> None:
    binding, performer = next(iter(site.app.performers.items()))
    job = await site.app.jobs.get((await _add(site, {"binding": binding, "payload": {}}))["job_id"])
    assert job is not None
    assert job.attempts_allowed == performer.options.max_attempts
