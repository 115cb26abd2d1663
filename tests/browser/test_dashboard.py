from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from kizami.web.server import serving
from tests.unit.web_site import AUTH, OPERATOR, Site, open_site

_LIVE_MS = 10_000  # a live page asks again every 2 s


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
async def page(site: Site, chromium: str) -> AsyncIterator[Page]:
    """Yield the login page in a browser that has failed the test if anything on a page complains."""
    complaints: list[str] = []
    async with serving(site.app, AUTH) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = await browser.new_page()
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        await opened.goto(f"{url}/schedules")
        yield opened
        await browser.close()
    assert complaints == []


async def _log_in(page: Page) -> None:
    await page.get_by_label("Token").fill(OPERATOR)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Schedules")).to_be_visible()


async def test_a_person_logs_in_pauses_a_schedule_and_resumes_it(site: Site, page: Page) -> None:
    await _log_in(page)
    await page.get_by_role("row", name="hourly").get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("PAUSED")).to_be_visible()
    assert (await site.app.schedules.get("hourly")).paused_at is not None
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert (await site.app.schedules.get("hourly")).paused_at is None


async def test_a_page_follows_what_happens_and_keeps_the_focus(site: Site, page: Page) -> None:
    await _log_in(page)
    row = page.get_by_role("row", name="hourly")
    trigger = row.get_by_role("button", name="Trigger")
    await trigger.focus()
    await site.app.schedules.pause("hourly")
    await expect(row.get_by_role("button", name="Resume")).to_be_visible(timeout=_LIVE_MS)
    await expect(trigger).to_be_focused()


async def test_a_page_says_when_it_can_not_be_kept_fresh_and_recovers(page: Page) -> None:
    await _log_in(page)
    note = page.get_by_role("status")
    await expect(note).to_be_hidden()
    await page.route("**/schedules", lambda route: route.abort())
    await expect(note).to_be_visible(timeout=_LIVE_MS)
    await page.unroute("**/schedules")
    await expect(note).to_be_hidden(timeout=_LIVE_MS)


async def test_a_page_works_with_the_keyboard_alone(site: Site, page: Page) -> None:
    await _log_in(page)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.get_by_role("row", name="hourly").get_by_role("button", name="Pause").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("PAUSED")).to_be_visible()
    assert (await site.app.schedules.get("hourly")).paused_at is not None


async def test_stored_scripts_do_not_run(site: Site, page: Page) -> None:
    """B070: in a browser, with the page that shows it."""
    await site.enqueue({"<img src=x onerror=document.title='hit'>": "</script><script>document.title='hit'</script>"})
    await _log_in(page)
    await page.get_by_role("link", name="Jobs").click()
    await page.get_by_role("row").get_by_role("link").first.click()
    await expect(page.locator("pre").first).to_contain_text("<script>document.title='hit'</script>")
    assert "hit" not in await page.title()
    assert await page.locator("main img").count() == 0


async def test_the_page_fits_a_narrow_screen(page: Page) -> None:
    await page.set_viewport_size({"width": 360, "height": 740})
    await _log_in(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
