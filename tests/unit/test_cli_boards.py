from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kizami import Kizami
from tests.unit.cli_project import Project, project_in

CHANNEL = "C0STATUS"


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with a board that Slack's refusal has turned off."""
    made = project_in(tmp_path, capsys, monkeypatch)

    async def fill() -> None:
        async with Kizami("reports").running(worker=False) as app:
            claim = await app.store.boards.claim("reports", "services", CHANNEL, "token", 1_000, "w1", None)
            assert claim is not None
            await app.store.boards.hand_back("reports", claim, "not_in_channel", off=True)

    asyncio.run(fill())
    return made


def test_a_board_that_is_off_says_so_and_is_switched_on(project: Project) -> None:
    listed = project.run("boards", "list", "reports:app")
    assert listed.out.splitlines()[1].split() == ["services", CHANNEL, "off", "0", "0", "not_in_channel"]
    ran = project.run("boards", "switch-on", "reports:app", CHANNEL, "services")
    assert (ran.code, ran.out) == (0, "services in C0STATUS: on\n")
    (board,) = json.loads(project.run("boards", "list", "reports:app", "--json").out)["boards"]
    assert (board["off"], board["off_at"]) == (False, None)


@pytest.mark.parametrize(
    ("channel", "sentence"),
    [(CHANNEL, "Board services in C0STATUS is not off."), ("C0OTHER", "There is no board services in C0OTHER")],
)
def test_what_is_not_off_is_refused(project: Project, channel: str, sentence: str) -> None:
    project.run("boards", "switch-on", "reports:app", CHANNEL, "services")
    ran = project.run("boards", "switch-on", "reports:app", channel, "services")
    assert ran.code == 5
    assert sentence in ran.err
