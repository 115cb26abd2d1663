from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.web_site import OPERATOR, Site, bearer, open_site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def _refused(site: Site, method: str, path: str, body: str | None = None) -> dict[str, Any]:
    async with site.as_operator() as asking:
        headers = {} if body is None else {"content-type": "application/json"}
        answer = await asking.request(method, path, content=body, headers=headers)
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == answer.status_code
    return problem


@pytest.mark.parametrize(
    ("body", "path", "remedy"),
    [
        ('{"schedule": "hourly", "scheduled_at": NaN}', "scheduled_at", "Send a finite number, or leave it out."),
        (
            f'{{"schedule": "hourly", "scheduled_at": {10**30}}}',
            "scheduled_at",
            "Send what /api/openapi.json describes.",
        ),
        (f'{{"schedule": "hourly", "scheduledAt": {10**30}}}', "scheduledAt", "Send what /api/openapi.json describes."),
        ('{"schedule": "hourly", "scheduledAt": "x"}', "scheduledAt", "Send what /api/openapi.json describes."),
        ('{"schedule": "hourly", "scheduled_at": "x"}', "scheduled_at", "Send what /api/openapi.json describes."),
        ('{"schedule": "hourly", "schedule": "nightly"}', "schedule", "Send each name once."),
        ('{"schedule": "hourly", "manual": true, "scheduled_at": 1}', "scheduled_at", "Leave out scheduled_at."),
        ('{"schedule": "hourly", "scheduled_at": 32503680000000}', "scheduled_at", "Deliver it when its time has come"),
    ],
)
async def test_a_refused_body_is_answered_in_its_own_names(site: Site, body: str, path: str, remedy: str) -> None:
    problem = await _refused(site, "POST", "/api/ticks", body)
    assert (problem["status"], problem["path"]) == (400, path)
    assert remedy in problem["remedy"]


@pytest.mark.parametrize(
    ("query", "path", "remedy"),
    [
        ("cursor=x", "cursor", "Use the next_cursor of an earlier page."),
        ("state=x&state=SCHEDULED", "state", "Send what"),
        ("stat=FAILED", "stat", "Known: binding, cursor, limit, schedule, state."),
    ],
)
async def test_a_refused_query_is_answered_in_its_own_names(site: Site, query: str, path: str, remedy: str) -> None:
    """A filter with a typing error would filter nothing."""
    problem = await _refused(site, "GET", f"/api/jobs?{query}")
    assert (problem["status"], problem["path"]) == (400, path)
    assert remedy in problem["remedy"]


async def test_what_is_not_there_or_can_not_be_done_is_answered_with_what_can(site: Site) -> None:
    assert "/api/openapi.json" in (await _refused(site, "GET", "/api/nowhere"))["remedy"]
    assert (await _refused(site, "DELETE", "/api/jobs"))["remedy"] == "Use GET."
    assert (await _refused(site, "GET", "/api/schedules/hourly/pause"))["remedy"] == "Use POST."
    async with site.as_operator() as asking:
        assert "Start from the overview." in (await asking.get("/nowhere")).text


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer \xff\xfe"},
        {b"authorization": b"\x00"},
        {b"cookie": b"kizami_token=\xff%ff; =; %zz"},
        {b"cookie": f"kizami_token={OPERATOR}".encode(), b"origin": b"http://["},
        {**{name.encode(): value.encode() for name, value in bearer(OPERATOR).items()}, b"content-type": b"\xff"},
    ],
)
async def test_headers_of_bad_bytes_are_refused(site: Site, headers: dict[bytes, bytes]) -> None:
    async with site.asking() as asking:
        answer: httpx.Response = await asking.post("/api/ticks", content=b'{"schedule": "hourly"}', headers=headers)
    assert answer.status_code in {401, 403, 415}
    assert answer.json()["remedy"]
