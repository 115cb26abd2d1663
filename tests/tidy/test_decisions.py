from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

_FOLDER = ROOT / "docs" / "decisions"
_RECORDS = sorted(path for path in _FOLDER.glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("record", _RECORDS, ids=lambda path: path.stem)
def test_a_decision_record_tells_situation_decision_and_consequence(record: Path) -> None:
    headings = re.findall(r"^## (.+)$", record.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Situation", "Decision", "Consequence"]


def test_the_index_lists_every_decision_record_once() -> None:
    index = (_FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([\w-]+\.md)\)", index)
    assert sorted(listed) == [path.name for path in _RECORDS]
