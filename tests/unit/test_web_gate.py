from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from kizami.web.auth import Auth, csrf_token_for
from kizami.web.body import BODY_BYTES_MAX
from kizami.web.gate import COOKIE
from kizami.web.headers import SECURITY_HEADERS
from tests.unit.web_site import FORM, OPERATOR, ORIGIN, VIEWER, Site, bearer, browser, cookie, open_site, routes

_READS = routes("GET")
_WRITES = routes("POST")
_BOTH = {path for _, path in _READS} & {path for _, path in _WRITES}  # listed by GET, added to by POST
_OPEN = ["/healthz", "/readyz", "/login", "/api/openapi.json", "/static/kizami.css"]
_PAUSE = "/api/schedules/hourly/pause"
_PAUSE_PAGE = "/schedules/hourly/pause"
_FOREIGN = [
    {"Origin": "https://evil.test"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": ORIGIN},
    {},
]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def _is_paused(site: Site) -> bool:
    return (await site.app.schedules.get("hourly")).paused_at is not None


def test_the_lists_of_routes_are_not_empty() -> None:
    assert ("POST", _PAUSE) in _WRITES
    assert ("POST", _PAUSE_PAGE) in _WRITES
    assert ("GET", "/api/jobs") in _READS
    assert ("GET", "/") in _READS
    assert {"/api/jobs"} == _BOTH


async def test_without_auth_only_the_probes_answer_with_one_word(tmp_path: Path) -> None:
    closed = ["/login", "/logout", "/api/openapi.json", "/static/kizami.css", "/anything"]
    async with open_site(tmp_path, auth=None) as site, site.asking(bearer(OPERATOR)) as client:
        assert (await client.get("/healthz")).text == "ok"
        assert (await client.get("/readyz")).text == "ready"
        everything = [*_READS, *_WRITES, *(("GET", path) for path in closed), ("POST", "/login"), ("POST", "/healthz")]
        answers = {(await client.request(method, path)).status_code for method, path in everything}
        assert answers == {404}


@pytest.mark.parametrize("headers", [{}, bearer("wrong"), bearer(""), {"Authorization": OPERATOR}, cookie("wrong")])
async def test_no_route_answers_who_has_no_right_token(site: Site, headers: dict[str, str]) -> None:
    async with site.asking({**headers, "Origin": ORIGIN}) as client:
        answers = {(await client.request(*route)).status_code for route in [*_READS, *_WRITES, ("GET", "/nope")]}
    assert answers == {401}
    assert not await _is_paused(site)


async def test_a_wrong_bearer_token_is_not_made_up_for_by_a_right_cookie(site: Site) -> None:
    async with site.asking({**cookie(OPERATOR), **bearer("wrong")}) as client:
        assert (await client.get("/api/jobs")).status_code == 401


async def test_the_open_addresses_need_no_token(site: Site) -> None:
    async with site.asking() as client:
        assert {(await client.get(path)).status_code for path in _OPEN} == {200}


async def test_a_viewer_reads_everything(site: Site) -> None:
    async with site.asking(bearer(VIEWER)) as client:
        answers = {path: (await client.get(path)).status_code for _, path in _READS if "greet" not in path}
    assert set(answers.values()) == {200}


@pytest.mark.parametrize("headers", [bearer(VIEWER), browser(VIEWER)])
async def test_a_viewer_changes_nothing(site: Site, headers: dict[str, str]) -> None:
    async with site.asking(headers) as client:
        answers = [await client.request(method, path) for method, path in _WRITES]
    assert {answer.status_code for answer in answers} == {403}
    assert not await _is_paused(site)


async def test_a_get_on_a_write_address_is_refused_and_changes_nothing(site: Site) -> None:
    """B071: an image tag can't press a button."""
    async with site.as_operator() as client:
        answers = {(await client.get(path)).status_code for _, path in _WRITES if path not in _BOTH}
    assert answers == {405}
    assert not await _is_paused(site)


@pytest.mark.parametrize("foreign", _FOREIGN)
async def test_another_site_changes_nothing_with_our_cookie(site: Site, foreign: dict[str, str]) -> None:
    """B071: with a foreign Origin, and with none at all."""
    secret = csrf_token_for(OPERATOR)
    async with site.asking({**cookie(OPERATOR), **foreign, "X-CSRF-Token": secret}) as client:
        answers = [await client.request(*route) for route in _WRITES]
        form = await client.post(_PAUSE_PAGE, content=urlencode({"csrf_token": secret}), headers=FORM)
    assert {answer.status_code for answer in [*answers, form]} == {403}
    assert not await _is_paused(site)


async def test_another_site_can_not_log_its_victim_in(site: Site) -> None:
    async with site.asking({"Origin": "https://evil.test"}) as client:
        answer = await client.post("/login", content=urlencode({"token": VIEWER}), headers=FORM)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_a_write_from_an_older_login_is_told_to_reload(site: Site) -> None:
    """B071: an expired token in a form says what to do."""
    async with site.asking(browser(OPERATOR, csrf="of another login")) as client:
        answer = await client.post(_PAUSE)
        page = await client.post(_PAUSE_PAGE)
    assert answer.status_code == page.status_code == 403
    assert "Reload the page" in answer.json()["remedy"]
    assert "Reload the page" in page.text
    assert not await _is_paused(site)


async def test_a_page_of_our_own_acts_in_two_tabs(site: Site) -> None:
    """B071: the legal flow works, also from a page that was opened before."""
    form = urlencode({"csrf_token": csrf_token_for(OPERATOR)})
    async with site.asking({**cookie(OPERATOR), "Sec-Fetch-Site": "same-origin", **FORM}) as client:
        answers = [await client.post(_PAUSE_PAGE, content=form) for _ in range(2)]
    assert [(one.status_code, one.headers["location"]) for one in answers] == [(303, "/schedules/hourly")] * 2
    assert await _is_paused(site)


async def test_a_bearer_token_needs_no_defence_against_other_sites(site: Site) -> None:
    async with site.asking({**bearer(OPERATOR), "Origin": "https://tools.test"}) as client:
        assert (await client.post(_PAUSE)).status_code == 200
    assert await _is_paused(site)


async def test_logging_in_keeps_the_token_from_scripts_and_other_sites(site: Site) -> None:
    async with site.asking({"Origin": ORIGIN}) as client:
        form = urlencode({"token": OPERATOR, "back": "/jobs?state=FAILED"})
        answer = await client.post("/login", content=form, headers=FORM)
        kept = answer.headers["set-cookie"].lower()
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=FAILED")
        assert "httponly" in kept
        assert "samesite=strict" in kept
        assert (await client.get("/jobs")).status_code == 200
        out = await client.post("/logout", content=urlencode({"csrf_token": csrf_token_for(OPERATOR)}), headers=FORM)
        assert out.headers["location"] == "/login"
        assert (await client.get("/jobs")).status_code == 401


async def test_a_viewer_may_log_out(site: Site) -> None:
    form = urlencode({"csrf_token": csrf_token_for(VIEWER)})
    async with site.asking({**cookie(VIEWER), "Origin": ORIGIN, **FORM}) as client:
        assert (await client.post("/logout", content=form)).status_code == 303


async def test_over_https_the_cookie_never_travels_in_the_clear(site: Site) -> None:
    async with site.asking({"Sec-Fetch-Site": "same-origin"}) as client:
        answer = await client.post("https://kizami.test/login", content=urlencode({"token": VIEWER}), headers=FORM)
    assert "; secure" in answer.headers["set-cookie"].lower()


async def test_a_wrong_token_is_not_kept(site: Site) -> None:
    async with site.asking({"Origin": ORIGIN}) as client:
        answer = await client.post("/login", content=urlencode({"token": "wrong"}), headers=FORM)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("back", ["//evil.test", "https://evil.test", "/\\evil.test", "evil", "/a\r\nX: y", "/a\n"])
async def test_a_login_never_leads_off_the_site(site: Site, back: str) -> None:
    async with site.asking({"Origin": ORIGIN}) as client:
        answer = await client.post("/login", content=urlencode({"token": OPERATOR, "back": back}), headers=FORM)
    assert answer.headers["location"] == "/"


async def test_a_page_without_a_token_asks_for_one_and_comes_back(site: Site) -> None:
    async with site.asking() as client:
        answer = await client.get("/jobs?state=FAILED")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert 'name="back" value="/jobs?state=FAILED"' in answer.text


async def test_a_cookie_s_token_may_hold_any_character(tmp_path: Path) -> None:
    strange = 'with; "quotes", %3B é'
    headers = {"Cookie": f"{COOKIE}={quote(strange, safe='')}"}
    async with open_site(tmp_path, Auth(operator=lambda: strange)) as site, site.asking(headers) as client:
        assert (await client.get("/jobs")).status_code == 200


async def test_a_source_that_fails_lets_nobody_in_and_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def vault() -> str:
        raise OSError("the vault at 10.0.0.7 is sealed")

    async with open_site(tmp_path, Auth(operator=vault)) as site, site.as_operator() as client:
        answers = [await client.request(*route) for route in (*_READS, *_WRITES)]
        assert {answer.status_code for answer in answers} == {500}
        assert not [answer for answer in answers if "10.0.0.7" in answer.text]
        assert (await client.get("/healthz")).status_code == 200
    assert "10.0.0.7" in caplog.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_the_api_takes_json_only(site: Site, kind: str) -> None:
    """B071: a text/plain body that parses as JSON is not one."""
    async with site.as_operator() as client:
        answer = await client.post("/api/ticks", content='{"schedule": "hourly"}', headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert answer.json()["remedy"] == "Send it as Content-Type: application/json."


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_large_is_not_read_to_its_end(site: Site, declared: bool) -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * (BODY_BYTES_MAX // 10)

    length = {"Content-Length": str(10 * BODY_BYTES_MAX)} if declared else {}
    headers = {"Content-Type": "application/json", **length}
    async with site.as_operator() as client:
        answer = await client.post("/api/ticks", content=chunks(), headers=headers)
    assert answer.status_code == 413
    assert read <= (0 if declared else 11)


async def test_every_answer_carries_the_security_headers(site: Site) -> None:
    paths = ["/healthz", "/login", "/static/kizami.css", "/api/jobs", "/api/nope", "/nope", "/"]
    async with site.as_operator() as client, site.asking() as stranger:
        answers = [await one.get(path) for one in (client, stranger) for path in paths]
        answers += [await client.get(_PAUSE), await stranger.post(_PAUSE)]
    assert {answer.status_code for answer in answers} == {200, 401, 404, 405}
    for answer in answers:
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_the_content_security_policy_trusts_nothing_inline_and_nobody_else() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
