"""118 notices and one board through kills in every phase of a post and a misbehaving Slack: none lost, none doubled.

Runs the demo's unattended replay at full size (50 kills), five seeds with the look-up and one without it.
"""

from __future__ import annotations

import asyncio
import json
import sys

from kizami.demo.verify import verify

SEEDS = 5


def prove(seed: int) -> dict[str, object]:
    """Return the verdict of every run; raises AssertionError when one doesn't hold."""
    runs = [(f"seed {each}", each, True) for each in range(seed, seed + SEEDS)]
    runs.append((f"seed {seed} without look-up", seed, False))
    return {name: _run(name, each, lookup=lookup) for name, each, lookup in runs}


def _run(name: str, seed: int, *, lookup: bool) -> str:
    verdict = asyncio.run(verify(seed, lookup=lookup))
    figures = json.dumps(verdict.as_json())
    print(f"{name}: {figures}", file=sys.stderr, flush=True)  # a whole proof takes half an hour
    unmet = verdict.unmet(lookup=lookup)
    assert not unmet, f"{name}: {'; '.join(unmet.values())}: {figures}"
    return figures
