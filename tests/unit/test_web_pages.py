from __future__ import annotations

import json
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from kizami.store.protocol import NewDelivery
from kizami.web.auth import csrf_token_for
from kizami.web.look import length_text, pretty_json, relative_text
from kizami.web.timeline import strokes
from tests.conformance.damaged import damage
from tests.unit.web_site import OPERATOR, VIEWER, Site, cookie, open_site, register, routes

_MARK = "window.hit"
_HOSTILE = f'<img src=x onerror={_MARK}=1></script><script>{_MARK}=1</script><a href="javascript:{_MARK}=1">\''
_PAGES = [path for _, path in routes("GET") if not path.startswith("/api/")]
_INSIDE = {"script", "style"}


class _Page(HTMLParser):
    """What of a page a browser would run, follow or load, and the text that a person reads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.inline = ""
        self.text = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = tag in _INSIDE

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in _INSIDE

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.inline += data.strip()
        else:
            self.text += data


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def _fill(site: Site, text: str) -> list[str]:
    """Put a text wherever somebody else's text can get; return the pages of the jobs that carry it."""
    app, store = site.app, site.app.store
    await register(app, text, host=text)
    await store.workers.note(text, text)
    failed = await site.enqueue({text: [text]})
    await site.fail(text)
    completed = await site.enqueue({})
    await site.complete(json.dumps(text))
    await app.schedules.trigger("hourly", by=text)
    assert await store.leases.acquire(app.name, text, "run", text, "worker-1", 600_000)
    await store.gates.close(app.name, text, text, 600_000, text)
    await store.deliveries.add(app.name, [NewDelivery(text, text, json.dumps({text: text}), "2026-01-01")])
    await store.deliveries.count_possible_duplicate(app.name, text, text, text)
    claim = await store.boards.claim(app.name, text, text, "token", 1000, "worker-1", None)
    assert claim is not None
    assert await store.boards.hand_back(app.name, claim, text)
    return [f"/jobs/{quote(job_id, safe='')}" for job_id in (failed, completed)]


async def _read(client: httpx.AsyncClient, path: str) -> _Page:
    answer = await client.get(path)
    assert answer.status_code == 200, path
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return _Page(answer.text)


async def test_a_script_in_stored_data_is_shown_as_text_everywhere(site: Site) -> None:
    """B070: payload key and value, result, error, host, lease, gate, delivery, board, who triggered."""
    job_pages = await _fill(site, _HOSTILE)
    paths = [*(path for path in _PAGES if "/jobs/" not in path), *job_pages]
    async with site.asking(cookie(OPERATOR)) as client:
        pages = {path: await _read(client, path) for path in paths}
    for path, page in pages.items():
        assert page.inline == "", path
        assert not [one for one in page.attributes if one[1].startswith("on") or "javascript:" in one[2][:20]], path
        assert not [one for one in page.attributes if one[1] == "src" and not one[2].startswith("/static/")], path
    carriers = {path for path, page in pages.items() if _HOSTILE in page.text or json.dumps(_HOSTILE) in page.text}
    assert carriers == {"/", "/schedules/hourly", "/jobs", "/deliveries", "/boards", *job_pages}


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?state=@",
        "/jobs?binding=@&schedule=@",
        "/jobs?cursor=@",
        "/jobs/@",
        "/schedules/@",
        "/deliveries?channel=@",
        "/deliveries?state=@",
        "/@",
    ],
)
async def test_a_script_in_an_address_is_shown_as_text(site: Site, path: str) -> None:
    """B070: what the address says comes back on error pages and in filters."""
    async with site.asking(cookie(OPERATOR)) as client:
        page = _Page((await client.get(path.replace("@", quote(_HOSTILE, safe="")))).text)
    assert page.inline == ""
    assert not [one for one in page.attributes if one[1].startswith("on") or one[2].startswith("javascript:")]


async def test_no_page_has_inline_script_or_style(site: Site) -> None:
    await site.enqueue()
    async with site.asking(cookie(OPERATOR)) as client:
        pages = [await _read(client, path) for path in (*_PAGES[:-1], "/login") if "/jobs/" not in path]
    assert len(pages) >= 6
    for page in pages:
        assert page.inline == ""
        assert "style" not in {name for _, name, _ in page.attributes}


async def test_every_link_of_every_page_leads_somewhere(site: Site) -> None:
    await site.app.schedules.trigger("hourly", by="test")
    await site.enqueue()
    waiting, seen = ["/"], set[str]()
    async with site.asking(cookie(OPERATOR)) as client:
        while waiting:
            path = waiting.pop()
            seen.add(path)
            page = _Page((await client.get(path)).text)
            links = {value for _, name, value in page.attributes if name in {"href", "src"}} - {"#main"}
            assert all(link.startswith("/") for link in links)
            answers = {link: (await client.get(link)).status_code for link in links - seen}
            assert set(answers.values()) <= {200}, answers
            waiting += [link for link in links - seen - set(waiting) if not link.startswith("/static/")]
    assert {"/jobs", "/schedules/hourly", "/boards"} <= seen
    assert [path for path in seen if path.startswith("/jobs/greet%230%3A")]


async def test_buttons_are_there_for_who_may_press_them(site: Site) -> None:
    async with site.asking(cookie(OPERATOR)) as client:
        page = (await client.get("/schedules")).text
        assert 'action="/schedules/hourly/pause"' in page
        assert f'value="{csrf_token_for(OPERATOR)}"' in page
    async with site.asking(cookie(VIEWER)) as client:
        page = (await client.get("/schedules")).text
        assert "/pause" not in page
        assert 'action="/logout"' in page


async def test_every_shown_time_carries_its_zone_and_offset(site: Site) -> None:
    async with site.asking(cookie(OPERATOR)) as client:
        page = await _read(client, "/schedules/hourly")
    upcoming = page.text.partition("Next planned times")[2].partition("Fire ledger")[0]
    assert upcoming.count("Asia/Tokyo (GMT+09:00)") == 8


async def test_a_job_offers_only_what_its_state_allows(site: Site) -> None:
    waiting = await site.enqueue()
    async with site.asking(cookie(OPERATOR)) as client:
        path = f"/jobs/{quote(waiting, safe='')}"
        page = (await client.get(path)).text
        assert "/cancel" in page
        assert "/retry" not in page
        await site.fail("no luck")
        page = (await client.get(path)).text
        assert "/retry" in page
        assert "/cancel" not in page


async def test_the_coming_hour_of_a_schedule_has_a_stroke_for_each_tick(site: Site) -> None:
    now = await site.app.store.schedules.now()
    hourly, nightly = await site.app.schedules.list()
    assert strokes(hourly, now).count("M") == 1
    assert strokes(nightly, now) == ""
    assert strokes(await site.app.schedules.pause("hourly"), now) == ""


async def test_a_refused_button_says_why_on_a_page(site: Site) -> None:
    job_id = await site.enqueue()
    async with site.asking({**cookie(OPERATOR), "Sec-Fetch-Site": "same-origin"}) as client:
        form = {"csrf_token": csrf_token_for(OPERATOR)}
        answer = await client.post(f"/jobs/{quote(job_id, safe='')}/retry", data=form)
    assert answer.status_code == 409
    assert "can&#39;t become SCHEDULED" in answer.text


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (3_605_000, "1 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_a_length_is_told_in_its_two_largest_units(milliseconds: int, shown: str) -> None:
    assert length_text(milliseconds) == shown


@pytest.mark.parametrize(("away", "shown"), [(0, "now"), (5_400, "in 5 s"), (-61_000, "1 min 1 s ago")])
def test_an_instant_is_told_from_now(away: int, shown: str) -> None:
    assert relative_text(1_000_000 + away, 1_000_000) == shown


def test_stored_text_that_is_not_json_is_shown_as_it_is() -> None:
    assert pretty_json("{broken") == "{broken"


def test_a_very_long_value_is_cut_and_says_so() -> None:
    assert pretty_json(json.dumps("x" * 50_000)).endswith("(cut after 20000 of 50002 characters)")


async def test_a_broken_schedule_is_shown_with_its_reason_and_hides_no_other(tmp_path: Path) -> None:
    """B020: on the overview, its page, the list and the API."""
    async with open_site(tmp_path) as site, site.as_operator() as asking:
        await damage(site.app.store, name="nightly", app="demo")
        for path in ("/", "/schedules", "/schedules/nightly"):
            page = await asking.get(path)
            assert page.status_code == httpx.codes.OK
            assert "Europe/Atlantis" in page.text
        listed = {one["name"]: one for one in (await asking.get("/api/schedules")).json()["schedules"]}
        assert listed["hourly"]["broken"] is None
        assert listed["nightly"]["timing"] is None
        assert "Europe/Atlantis" in listed["nightly"]["broken"]
        assert (await asking.get("/api/schedules/nightly/preview")).status_code == httpx.codes.BAD_REQUEST
