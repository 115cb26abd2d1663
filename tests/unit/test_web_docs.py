from __future__ import annotations

import re
from pathlib import Path

from kizami.web.problems import STATUSES
from tests.unit.web_site import routes

_PAGE = (Path(__file__).parents[2] / "docs" / "web.md").read_text(encoding="utf-8")


def test_the_page_describes_every_route_of_the_api() -> None:
    table = _PAGE.partition("## The API")[2].partition("## Refusals")[0]
    filled = table.replace("{name}", "hourly").replace("{job_id}", "greet%230:first")
    for _, path in routes("GET", "POST"):
        if path.startswith("/api/"):
            stem, _, last = path.rpartition("/")
            assert (
                f"`{path}`" in filled or f" {path}`" in filled or (f"{stem}/" in filled and f"`/{last}`" in filled)
            ), path


def test_the_page_explains_every_status() -> None:
    explained = {
        int(number) for line in re.findall(r"^\| (\d{3}[\d, ]*) \|", _PAGE, re.MULTILINE) for number in line.split(",")
    }
    assert explained == set(STATUSES.values()) - {500}
