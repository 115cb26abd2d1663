"""Whatever is sent to the API, it answers, and what it refuses it refuses with the next step."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.web_site import Site, open_site, routes

WORDS = [
    *(
        "",
        "hourly",
        "nightly",
        "greet",
        "SCHEDULED",
        "owed",
        "nan",
        "inf",
        "-1",
        "0",
        "1",
        "9" * 18,
        "9" * 5_000,
        "1e9",
    ),
    *("\0", "a\0b", "../..", "%", "x" * 3_000, "greet#0:first", "greet#0:", "#", "刻み", "\u202e", "true"),
]
TEXT = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=12)
LEAF = st.none() | st.booleans() | st.integers() | st.integers(10**17, 10**30) | st.floats() | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
FIELDS = st.sampled_from(["schedule", "scheduled_at", "scheduledAt", "manual", "when"])
BODY = (
    st.dictionaries(FIELDS, LEAF, max_size=4).map(lambda body: json.dumps({"schedule": "hourly", **body}).encode())
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=30)
    | st.sampled_from([b"[" * 20_000, b'{"a":' * 3_000, b"x" * 1_100_000, b'{"schedule": "a", "schedule": "b"}'])
)
QUERY = st.dictionaries(
    st.sampled_from(["state", "binding", "schedule", "cursor", "limit", "count", "channel", "other"]), TEXT, max_size=3
)
TYPES = st.sampled_from(["application/json", "application/json; charset=x", "text/plain", "", "application/x\xff"])
ROUTES = [(method, path) for method, path in routes("GET", "POST") if path.startswith("/api/")]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    route=st.sampled_from(ROUTES),
    method=st.sampled_from(["as it is"] * 4 + ["GET", "POST", "DELETE", "PUT"]),
    name=st.none() | TEXT,
    query=QUERY,
    body=BODY,
    kind=TYPES,
)
async def test_every_refusal_says_what_to_do(
    site: Site, route: tuple[str, str], method: str, name: str | None, query: dict[str, str], body: bytes, kind: str
) -> None:
    own, path = route
    if name is not None:
        path = path.replace("hourly", quote(name, safe="")).replace("greet%230:first", quote(name, safe=""))
    verb = own if method == "as it is" else method
    async with site.as_operator() as asking:
        headers = {} if verb == "GET" else {b"content-type": kind.encode("latin-1")}
        content = None if verb == "GET" else body
        answer = await asking.request(verb, path, params=query, content=content, headers=headers)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem["code"]
        assert problem["message"]
        assert problem["remedy"], problem
        assert len(answer.content) < 20_000
