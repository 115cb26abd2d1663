"""118 notices and one board through kills in every phase of a post and a misbehaving Slack: none lost, none doubled.

Runs the demo's unattended replay at full size (50 kills), five seeds with the look-up and one without it.
"""

from __future__ import annotations

import asyncio

from kizami.demo.verify import verify

SEEDS = 5
BOARD_EDITS_LEAST = 100


def prove(seed: int) -> dict[str, object]:
    """Return the verdict of every run; raises AssertionError when one doesn't hold."""
    figures: dict[str, object] = {}
    for each in range(seed, seed + SEEDS):
        verdict = asyncio.run(verify(each))
        assert verdict.holds(lookup=True), f"seed {each}: {verdict}"
        assert verdict.board_edits >= BOARD_EDITS_LEAST, f"seed {each}: {verdict}"
        figures[f"seed {each}"] = verdict.as_json()
    verdict = asyncio.run(verify(seed, lookup=False))
    assert verdict.holds(lookup=False), f"without look-up: {verdict}"
    figures["without look-up"] = verdict.as_json()
    return figures
