from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.store.protocol import NewDelivery
from tests.unit.cli_project import Project, project_in

CHANNEL = "C0ALERTS"
NOW = "2999-01-01"


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose app owes one notice and has set two aside."""
    made = project_in(tmp_path, capsys, monkeypatch)

    async def fill() -> None:
        async with Kizami("reports").running(worker=False) as app:
            old = [NewDelivery(CHANNEL, item, '{"text": "hi"}', "2026-01-01") for item in ("late", "later")]
            await app.store.deliveries.add("reports", [*old, NewDelivery(CHANNEL, "owed", "{}", NOW)])
            await app.store.deliveries.set_aside_old("reports", CHANNEL, "2026-01-02", "too old")

    asyncio.run(fill())
    return made


def states(project: Project) -> dict[str, str]:
    found = json.loads(project.run("deliveries", "list", "reports:app", "--json").out)["deliveries"]
    return {one["item"]: one["state"] for one in found}


def test_deliveries_are_listed_with_their_state_and_note(project: Project) -> None:
    ran = project.run("deliveries", "list", "reports:app", "--state", "set_aside", "--channel", CHANNEL)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == ["item", "later", "late"]
    assert "too old" in ran.out
    assert project.run("deliveries", "list", "reports:app", "--state", "delivered").out == "No such deliveries.\n"


def test_one_that_was_set_aside_is_owed_again_and_then_all(project: Project) -> None:
    ran = project.run("deliveries", "requeue", "reports:app", CHANNEL, "late")
    assert (ran.code, ran.out) == (0, "C0ALERTS: 1 owed again\n")
    assert states(project) == {"late": "owed", "later": "set_aside", "owed": "owed"}
    assert project.run("deliveries", "requeue", "reports:app", CHANNEL, "--all").out == "C0ALERTS: 1 owed again\n"
    assert set(states(project).values()) == {"owed"}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((CHANNEL, "owed"), 5, "Delivery owed to C0ALERTS is not set aside."),
        ((CHANNEL, "absent"), 5, "There is no delivery absent to C0ALERTS in app reports."),
        (("C0OTHER", "--all"), 5, "There are no deliveries to C0OTHER in app reports."),
        ((CHANNEL,), 2, "Name an ITEM, or give --all"),
        ((CHANNEL, "late", "--all"), 2, "Name an ITEM, or give --all"),
    ],
)
def test_what_cannot_be_requeued_is_one_sentence(
    project: Project, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    ran = project.run("deliveries", "requeue", "reports:app", *arguments)
    assert (ran.code, sentence in ran.err, ran.err.count("\n")) == (code, True, 1)
