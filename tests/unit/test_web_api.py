from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from kizami import Kizami
from kizami.engine.condition import Condition
from kizami.runtime import SystemClock, SystemRuntime, sortable_id
from kizami.store.protocol import NewDelivery
from kizami.web.asgi import build
from kizami.web.counts import Counts
from kizami.web.problems import MEDIA_TYPE
from tests.conformance.whole_store import StillClock
from tests.unit.web_site import AUTH, OPERATOR, ORIGIN, Site, bearer, client, open_site, routes

_HOUR = 3_600_000
_JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def _get(site: Site, path: str, status: int = 200) -> Any:
    async with site.as_operator() as client:
        answer = await client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def _post(site: Site, path: str, body: object = None, status: int = 200) -> Any:
    async with site.as_operator() as client:
        answer = await client.post(path, json=body) if body is not None else await client.post(path)
    assert answer.status_code == status, answer.text
    return answer.json()


def _address(job_id: str) -> str:
    return f"/api/jobs/{quote(job_id, safe='')}"


async def test_a_job_is_shown_with_its_payload_result_and_attempts(site: Site) -> None:
    job_id = await site.enqueue({"to": "you"})
    await site.fail("no luck")
    job = await _get(site, _address(job_id))
    assert (job["job_id"], job["binding"], job["state"]) == (job_id, "greet", "FAILED")
    assert job["payload"] == {"to": "you"}
    assert job["error"] == "no luck"
    assert [one["outcome"] for one in job["attempts"]] == ["failed"]
    assert isinstance(job["created_at"], int)


async def test_jobs_are_listed_page_by_page_newest_first(site: Site) -> None:
    ids = [await site.enqueue(number) for number in range(5)]
    first = await _get(site, "/api/jobs?limit=3")
    second = await _get(site, f"/api/jobs?limit=3&cursor={quote(first['next_cursor'], safe='')}")
    assert [job["job_id"] for job in first["jobs"] + second["jobs"]] == ids[::-1]
    assert second["next_cursor"] is None


async def test_filters_narrow_the_list(site: Site) -> None:
    failed, waiting = await site.enqueue(), await site.enqueue()
    await site.fail("no luck")
    fired = (await _post(site, "/api/schedules/hourly/trigger"))["job_id"]

    async def found(query: str) -> set[str]:
        return {job["job_id"] for job in (await _get(site, f"/api/jobs?{query}"))["jobs"]}

    assert await found("state=FAILED") == {failed}
    assert await found("state=FAILED&state=SCHEDULED") == {failed, waiting, fired}
    assert await found("schedule=hourly") == {fired}
    assert await found("binding=greet") == {failed, waiting, fired}
    assert await found("binding=other") == set()


async def test_a_failed_job_is_retried_and_a_waiting_one_cancelled(site: Site) -> None:
    job_id = await site.enqueue()
    await site.fail("no luck")
    assert (await _post(site, f"{_address(job_id)}/retry"))["state"] == "SCHEDULED"
    assert (await _post(site, f"{_address(job_id)}/cancel"))["state"] == "CANCELLED"


async def test_a_wrong_state_is_a_conflict_and_an_unknown_job_is_not_found(site: Site) -> None:
    job_id = await site.enqueue()
    problem = await _post(site, f"{_address(job_id)}/retry", status=409)
    assert problem["code"] == "wrong_state"
    assert problem["remedy"]
    assert (await _post(site, f"{_address('greet#0:never')}/cancel", status=404))["code"] == "not_found"
    assert (await _get(site, _address("greet#0:never"), status=404))["code"] == "not_found"
    assert (await _get(site, _address("no job id"), status=400))["path"] == "job_id"


@pytest.mark.parametrize("number", [9007199254740993, 2**63, 10**30, -(2**63)])
async def test_integers_keep_every_digit(site: Site, number: int) -> None:
    """B058: also beyond 53 and 64 bits, on the API and on the page."""
    job_id = await site.enqueue({"n": number})
    async with site.as_operator() as client:
        assert f'"n":{number}' in (await client.get(_address(job_id))).text
        assert f"&#34;n&#34;: {number}" in (await client.get(f"/jobs/{quote(job_id, safe='')}")).text


@pytest.mark.parametrize("query", [f"limit={10**30}", "limit=0", "limit=x", f"limit={'9' * 5000}", "state=DONE"])
async def test_a_query_out_of_range_is_refused_with_its_field(site: Site, query: str) -> None:
    """B058: never a 500."""
    problem = await _get(site, f"/api/jobs?{query}", status=400)
    assert problem["code"] == "invalid_input"
    assert problem["path"].startswith(query.partition("=")[0])


@pytest.mark.parametrize("cursor", ["x", "%00", "9" * 400, "a" * 501])
async def test_a_cursor_that_nobody_gave_is_refused(site: Site, cursor: str) -> None:
    assert (await _get(site, f"/api/jobs?cursor={cursor}", status=400))["code"] == "invalid_input"


async def test_a_nul_character_in_a_filter_is_refused_by_name(site: Site) -> None:
    """B055: not every database can even be asked for it."""
    refused = await _get(site, "/api/jobs?binding=a%00b", status=400)
    assert (refused["code"], refused["path"]) == ("invalid_input", "binding")


async def test_a_nul_character_in_a_name_is_refused_by_name(site: Site) -> None:
    """B055: in a schedule's name."""
    await _get(site, "/api/schedules/a%00b", status=400)
    await _post(site, "/api/ticks", {"schedule": "a\0b"}, status=400)


async def test_innocent_text_that_looks_like_an_escape_survives(site: Site) -> None:
    """B055: backslash, u, 0, 0, 0, 0."""
    job_id = await site.enqueue({"text": "\\u0000"})
    assert (await _get(site, _address(job_id)))["payload"] == {"text": "\\u0000"}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ('{"schedule": "hourly", "scheduled_at": NaN}', "scheduled_at"),
        ('{"a": {"b": [1, -Infinity]}}', "a.b[1]"),
        ('{"a": 1e999}', "a"),
        ('{"a": "\\ud800"}', "a"),
        ('{"\\ud800": 1}', "?"),
    ],
)
async def test_what_only_python_takes_for_json_is_refused_with_its_path(site: Site, body: str, path: str) -> None:
    """B056: the Python parser accepts these."""
    async with site.as_operator() as client:
        answer = await client.post("/api/ticks", content=body, headers=_JSON)
    assert (answer.status_code, answer.json()["code"], answer.json()["path"]) == (400, "invalid_json", path)


@pytest.mark.parametrize("body", ["{", "", "[]", "null", "[" * 100_000, '{"a": ' + "1" * 5000 + "}", b"\xff\xfe"])
async def test_a_body_that_is_no_object_is_a_bad_request(site: Site, body: str | bytes) -> None:
    async with site.as_operator() as client:
        assert (await client.post("/api/ticks", content=body, headers=_JSON)).status_code == 400


async def test_a_tick_fires_once_and_its_repeat_is_a_duplicate(site: Site) -> None:
    at = (await site.app.schedules.get("hourly")).next_at
    assert at is not None
    body = {"schedule": "hourly", "scheduled_at": at - _HOUR}
    first = await _post(site, "/api/ticks", body)
    again = await _post(site, "/api/ticks", body)
    assert (first["duplicate"], first["outcome"]) == (False, "fired")
    assert first["job_id"] == f"greet#0:hourly-{at - _HOUR}"
    assert (again["duplicate"], again["outcome"]) == (True, "duplicate")


async def test_requests_may_be_written_in_camel_case(site: Site) -> None:
    at = (await site.app.schedules.get("hourly")).next_at
    assert at is not None
    tick = await _post(site, "/api/ticks", {"schedule": "hourly", "scheduledAt": at - _HOUR})
    assert tick["scheduled_at"] == at - _HOUR


async def test_an_instant_that_is_not_planned_is_refused(site: Site) -> None:
    at = (await site.app.schedules.get("hourly")).next_at
    assert at is not None
    body = {"schedule": "hourly", "scheduled_at": at - _HOUR + 1}
    assert (await _post(site, "/api/ticks", body, status=400))["code"] == "not_planned"


@pytest.mark.parametrize("at", [True, "now", 1.5, 10**30, -(10**30)])
async def test_a_time_is_epoch_milliseconds_and_nothing_else(site: Site, at: object) -> None:
    problem = await _post(site, "/api/ticks", {"schedule": "hourly", "scheduled_at": at}, status=400)
    assert problem["code"] == "invalid_input"


async def test_an_unknown_field_is_refused_by_name(site: Site) -> None:
    problem = await _post(site, "/api/ticks", {"schedule": "hourly", "when": 1}, status=400)
    assert problem["path"] == "when"
    assert [one["path"] for one in problem["errors"]] == ["when"]


async def test_manual_ticks_are_never_duplicates(site: Site) -> None:
    ticks = [await _post(site, "/api/ticks", {"schedule": "hourly", "manual": True}) for _ in range(2)]
    assert [tick["duplicate"] for tick in ticks] == [False, False]
    assert ticks[0]["job_id"] != ticks[1]["job_id"]


async def test_a_schedule_is_shown_in_its_own_time(site: Site) -> None:
    schedule = await _get(site, "/api/schedules/hourly")
    assert (schedule["time_zone"], schedule["gmt_offset"]) == ("Asia/Tokyo", "GMT+09:00")
    assert schedule["next_at_local"].endswith("Asia/Tokyo (GMT+09:00)")
    assert schedule["ledger"] == []
    listed = await _get(site, "/api/schedules")
    assert [one["name"] for one in listed["schedules"]] == ["hourly", "nightly"]


async def test_a_preview_tells_the_next_planned_times(site: Site) -> None:
    preview = await _get(site, "/api/schedules/hourly/preview?count=3")
    first, second, third = (fire["at"] for fire in preview["fires"])
    assert (second - first, third - second) == (_HOUR, _HOUR)
    assert all(":00:00 Asia/Tokyo (GMT+09:00)" in fire["local"] for fire in preview["fires"])


async def test_a_schedule_is_paused_triggered_and_resumed(site: Site) -> None:
    assert (await _post(site, "/api/schedules/hourly/pause"))["paused_at"] is not None
    fired = await _post(site, "/api/schedules/hourly/trigger")
    assert (fired["outcome"], fired["kind"], fired["by"]) == ("fired", "manual", "web (operator)")
    resumed = await _post(site, "/api/schedules/hourly/resume")
    assert resumed["paused_at"] is None
    assert resumed["next_at"] > resumed["registered_at"]
    detail = await _get(site, "/api/schedules/hourly")
    assert [line["outcome"] for line in detail["ledger"] if line["kind"] == "manual"] == ["fired"]


@pytest.mark.parametrize("action", ["pause", "resume", "trigger"])
async def test_an_unknown_schedule_is_not_found(site: Site, action: str) -> None:
    assert (await _post(site, f"/api/schedules/never/{action}", status=404))["code"] == "not_found"


async def test_a_trigger_while_the_lease_is_held_tells_who_holds_it(site: Site) -> None:
    leases = site.app.store.leases
    run = sortable_id(site.app.runtime.clock, site.app.runtime.entropy)
    assert await leases.acquire("demo", "night", run, "greet#0:other", "worker-1", 600_000)
    problem = await _post(site, "/api/schedules/nightly/trigger", status=409)
    assert problem["error"] == problem["code"] == "sync_in_progress"
    assert problem["holder"]["holder"] == "greet#0:other"
    assert {type(problem["holder"][name]) for name in ("started_at", "heartbeat_at")} == {int}
    assert (await _get(site, "/api/jobs"))["jobs"] == []
    [lease] = (await _get(site, "/api/leases"))["leases"]
    assert (lease["name"], lease["holder"]) == ("night", "greet#0:other")


async def test_what_was_set_aside_is_owed_again(site: Site) -> None:
    store, items = site.app.store.deliveries, ("one", "two", "three")
    await store.add("demo", [NewDelivery("C1", item, "{}", "2026-01-01") for item in items])
    await store.set_aside_old("demo", "C1", "2026-01-02", "too old")
    assert await _post(site, "/api/deliveries/requeue", {"channel": "C1", "item": "one"}) == {"requeued": 1}
    assert await _post(site, "/api/deliveries/requeue", {"channel": "C1"}) == {"requeued": 2}
    owed = (await _get(site, "/api/deliveries?state=owed"))["deliveries"]
    assert {one["note"] for one in owed} == {"requeued, was due 2026-01-01: too old"}
    refused = await _post(site, "/api/deliveries/requeue", {"channel": "C1", "item": "one"}, status=409)
    assert refused["code"] == "wrong_state"
    missing = await _post(site, "/api/deliveries/requeue", {"channel": "C1", "item": "none"}, status=404)
    assert missing["code"] == "not_found"
    assert (await _post(site, "/api/deliveries/requeue", {"item": "one"}, status=400))["path"] == "channel"


async def test_the_mirror_s_rooms_are_shown(site: Site) -> None:
    await site.app.store.deliveries.add("demo", [NewDelivery("C1", "item", '{"text": "hi"}', "2026-01-01")])
    claim = await site.app.store.boards.claim("demo", "status", "C1", "token", 1000, "worker-1", None)
    assert claim is not None
    [delivery] = (await _get(site, "/api/deliveries?state=owed"))["deliveries"]
    assert (delivery["item"], delivery["content"]) == ("item", {"text": "hi"})
    assert (await _get(site, "/api/deliveries?state=delivered"))["deliveries"] == []
    assert (await _get(site, "/api/deliveries?state=lost", status=400))["path"] == "state"
    assert [board["name"] for board in (await _get(site, "/api/boards"))["boards"]] == ["status"]
    [worker] = (await _get(site, "/api/workers"))["workers"]
    assert (worker["worker_id"], worker["host"], worker["note"]) == ("worker-1", "somewhere", None)


async def test_stats_count_every_state(site: Site) -> None:
    await site.enqueue()
    stats = await _get(site, "/api/stats")
    assert stats["jobs"]["SCHEDULED"] == 1
    assert stats["jobs"]["FAILED"] == 0
    assert stats["workers"] == 1


async def test_a_count_is_kept_for_ten_times_as_long_as_it_took(tmp_path: Path) -> None:
    """B073: many open dashboards don't keep a large database busy counting."""
    clock = _SlowClock()
    app = Kizami("demo", database_url=f"sqlite:///{tmp_path / 'counts.db'}", runtime=SystemRuntime(clock=clock))
    await app.open()
    counts = Counts(app)
    first = await counts.jobs()
    clock.wait(1)
    assert await counts.jobs() is first
    clock.wait(100 * _SlowClock.STEP_MS)
    assert await counts.jobs() is not first
    await app.close()


class _SlowClock(SystemClock):
    """A clock that moves on by a step whenever anything reads it."""

    STEP_MS = 1_000

    def __init__(self) -> None:
        self._boot = 0

    def boot_ms(self) -> int:
        self._boot += self.STEP_MS
        return self._boot

    def wait(self, milliseconds: int) -> None:
        self._boot += milliseconds


async def test_a_state_may_be_written_in_any_case(site: Site) -> None:
    async with site.as_operator() as client:
        answers = [
            (await client.get("/api/jobs", params={"state": text})) for text in ("COMPLETED", "completed", "nope")
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert answers[0].json() == answers[1].json()


async def test_without_a_database_the_answer_is_503_with_the_reason(site: Site) -> None:
    await site.app.store.close()
    problem = await _get(site, "/api/jobs", status=503)
    assert problem["code"] == "store_unavailable"
    assert problem["message"]
    async with site.asking() as client:
        probe = await client.get("/readyz")
        assert (probe.status_code, probe.text) == (503, "unavailable")
        assert (await client.get("/healthz")).status_code == 200


async def test_a_worker_that_does_not_do_its_work_is_not_ready(site: Site) -> None:
    """B043: the process answers, the database too, and yet nothing fires."""
    clock = StillClock()
    condition = Condition(clock)
    part = condition.part("firer", 1_000)
    site.app._conditions.append(condition)  # noqa: SLF001 - what a running worker does
    async with site.asking() as client:
        assert (await client.get("/readyz")).text == "ready"
        part.ailing("the disk is gone")
        clock.move(10_000)
        probe = await client.get("/readyz")
        assert (probe.status_code, probe.text) == (503, "troubled")
        part.well()
        assert (await client.get("/readyz")).text == "ready"


async def test_problems_say_that_they_are_problems(site: Site) -> None:
    async with site.as_operator() as client:
        for answer in (await client.get("/api/nope"), await client.delete("/api/jobs")):
            assert answer.headers["content-type"] == MEDIA_TYPE
            assert answer.json()["status"] == answer.status_code


@pytest.mark.parametrize("path", ["/api/boards", "/boards"])
async def test_a_bug_is_answered_without_its_details(path: str) -> None:
    no_store_at_all: Any = object()
    web = build(Kizami("demo", store=no_store_at_all), AUTH)
    transport = httpx.ASGITransport(web, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=bearer(OPERATOR)) as asking:
        answer = await asking.get(path)
    assert answer.status_code == 500
    assert "log says why" in answer.text
    assert "object" not in answer.text
    assert "content-security-policy" in answer.headers


async def test_the_description_names_every_route_and_how_it_refuses(site: Site) -> None:
    described = await _get(site, "/api/openapi.json")
    assert described["openapi"].startswith("3.1")
    operations = {
        (method.upper(), path.replace("{name}", "hourly").replace("{job_id}", "greet%230:first"))
        for path, methods in described["paths"].items()
        for method in methods
    }
    assert operations == {route for route in routes("GET", "POST") if route[1].startswith("/api/")}
    for methods in described["paths"].values():
        for operation in methods.values():
            assert set(operation["responses"]) == {"200", "default"}
    assert "HTTPValidationError" not in described["components"]["schemas"]


async def test_every_reference_of_the_description_leads_somewhere(site: Site) -> None:
    described = await _get(site, "/api/openapi.json")
    schemas = described["components"]["schemas"]
    assert _references(described) <= {f"#/components/schemas/{name}" for name in schemas}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


async def test_the_app_can_be_mounted_under_a_prefix(site: Site) -> None:
    outer = Starlette(routes=[Mount("/ops", app=site.web)])
    async with client(outer, bearer(OPERATOR)) as asking:
        assert (await asking.get("/ops/api/jobs")).status_code == 200
        page = await asking.get("/ops/schedules")
        assert 'href="/ops/jobs"' in page.text
        assert 'href="/jobs"' not in page.text
        assert (await asking.get("/ops/static/kizami.css")).status_code == 200
        paused = await asking.post("/ops/schedules/hourly/pause")
        assert paused.headers["location"] == "/ops/schedules/hourly"
    async with client(outer) as stranger:
        assert (await stranger.get("/ops/api/jobs")).status_code == 401
        assert (await stranger.get("/ops/healthz")).text == "ok"


async def test_a_board_that_is_off_is_switched_on_once(site: Site) -> None:
    boards = site.app.store.boards
    claim = await boards.claim("demo", "status", "C1", "token", 1000, "worker-1", None)
    assert claim is not None
    await boards.hand_back("demo", claim, "is_archived", off=True)
    assert [board["off"] for board in (await _get(site, "/api/boards"))["boards"]] == [True]
    answer = await _post(site, "/api/boards/C1/status/switch-on", {})
    assert (answer["name"], answer["off"], answer["note"]) == ("status", False, None)
    assert (await _post(site, "/api/boards/C1/status/switch-on", {}, status=409))["code"] == "wrong_state"
    assert (await _post(site, "/api/boards/C2/status/switch-on", {}, status=404))["code"] == "not_found"
