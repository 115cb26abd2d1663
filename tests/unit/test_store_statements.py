"""The statements of both dialects: the same names, and parameters that every caller of one gives the other too."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import kizami.store.rooms
from kizami.core.errors import InvalidInputError
from kizami.core.storable import require_storable
from kizami.store.postgres.transaction import compiled
from kizami.store.statements import Dialect, Statement, read

SQLITE, POSTGRES = "kizami.store.sqlite", "kizami.store.postgres"
OWN_AREA = "database"
"""What only the stores themselves ask."""
WHERE_THE_WAY_IS_LONG = "job_alone"
"""What no room asks of SQLite, to which there is no way."""
OF_THE_CLOCK = {"now", "boot", "boot_id"}


def areas(package: str) -> set[str]:
    found = {entry.name.removesuffix(".sql") for entry in (files(package) / "sql").iterdir()}
    return found - {OWN_AREA, WHERE_THE_WAY_IS_LONG}


def parameters(text: str) -> set[str]:
    without_comments = re.sub(r"--.*", "", text)
    numbered = {f"c{number}" for number in re.findall(r"\?(\d+)", without_comments)}
    return numbered | set(re.findall(r"(?<!:):([a-z]\w*)", without_comments))


def test_both_dialects_have_the_same_areas() -> None:
    assert areas(SQLITE) == areas(POSTGRES)


@pytest.mark.parametrize("area", sorted(areas(SQLITE)))
def test_both_dialects_have_the_same_statements(area: str) -> None:
    sqlite, postgres = read(SQLITE, area), read(POSTGRES, area)
    assert set(sqlite) == set(postgres)
    for name in sqlite:
        assert parameters(sqlite[name]) - OF_THE_CLOCK == parameters(postgres[name]) - OF_THE_CLOCK, name


def test_every_statement_is_asked_for_by_some_room() -> None:
    rooms = "".join(path.read_text() for path in Path(next(iter(kizami.store.rooms.__path__))).glob("*.py"))
    named = set(re.findall(r'"(\w+)"', rooms))
    assert {name for area in areas(SQLITE) for name in read(SQLITE, area)} <= named


def test_a_statement_that_does_not_exist_is_named() -> None:
    with pytest.raises(KeyError, match=r"no statement nosuch in sql/jobs\.sql"):
        Dialect(SQLITE)[Statement("jobs", "nosuch")]


def test_parameters_are_written_for_psycopg_and_casts_stay() -> None:
    assert compiled("SELECT :a::text, b % 2, ':c'") == "SELECT %(a)s::text, b %% 2, '%(c)s'"


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "é\udfff"])
def test_text_that_not_every_store_keeps_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match="The posted channel contains U\\+") as caught:
        require_storable({"app": "shop", "posted_channel": text})
    assert caught.value.facts["path"] == "posted_channel"


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_of_more_than_64_bits_is_refused_by_name(number: int) -> None:
    with pytest.raises(InvalidInputError, match="The due at"):
        require_storable({"due_at": number})


def test_everything_else_is_kept() -> None:
    require_storable({"text": "刻み 🕰", "number": 2**63 - 1, "nothing": None, "truth": True, "part": 0.5})
