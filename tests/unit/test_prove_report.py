from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from prove.run import attempt, find_proofs, report

_AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_a_report_without_proofs_claims_nothing(tmp_path: Path) -> None:
    assert "nothing is proved" in report([attempt(proof, 1) for proof in find_proofs(tmp_path, [])], 1, _AT)


def test_a_report_tells_claim_result_and_figures(tmp_path: Path) -> None:
    (tmp_path / "twice_prove.py").write_text(
        '"""No tick fires twice."""\n\ndef prove(seed):\n    return {"ticks": seed}\n'
    )
    text = report([attempt(proof, 7) for proof in find_proofs(tmp_path, ["twice"])], 7, _AT)
    assert "2026-01-02 03:04 UTC with seed 7" in text
    assert "### twice\n\nNo tick fires twice.\n\nheld, 0 s\n- ticks: 7" in text


def test_a_broken_claim_is_reported_as_broken(tmp_path: Path) -> None:
    (tmp_path / "twice_prove.py").write_text('"""Claim."""\n\ndef prove(seed):\n    assert seed > 9, "tick 3 twice"\n')
    (verdict,) = [attempt(proof, 7) for proof in find_proofs(tmp_path, [])]
    assert verdict.broken == "tick 3 twice"
    assert "BROKEN: tick 3 twice" in report([verdict], 7, _AT)


def test_a_misspelt_proof_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no proof named exactly_twice"):
        find_proofs(tmp_path, ["exactly_twice"])
