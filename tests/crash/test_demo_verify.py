"""The demo's promise at a size for every run: two kills in each phase; the full size is `make prove PROVE=demo`."""

from __future__ import annotations

import pytest

from kizami.demo.supervisor import PHASES
from kizami.demo.truth import read_checks, turns_down
from kizami.demo.verify import verify


def test_the_recording_holds_what_its_description_says() -> None:
    """4,476 checks, 187 of them down, in 118 turns from up to down."""
    checks = read_checks()
    assert len(checks) == 4_476
    assert sum(check["status"] == "down" for check in checks) == 187
    assert len(turns_down(checks)) == 118


@pytest.mark.timeout(290)
async def test_nothing_is_lost_or_doubled_through_kills_and_faults() -> None:
    """Every notice arrives once, the board is one message, every planned tick is accounted for (B076)."""
    verdict = await verify(seed=11, rounds=2)
    assert verdict.holds(lookup=True), verdict
    assert verdict.kills_by_phase == dict.fromkeys(PHASES, 2)
