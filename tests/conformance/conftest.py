from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kizami.store.protocol import Store
from tests.conformance.whole_store import StillClock, employ, whole_store


@pytest.fixture
def still_clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def whole(tmp_path: Path, still_clock: StillClock) -> AsyncIterator[Store]:
    """Open a store on a real file, with the workers w1, w2 and w3."""
    async with whole_store(tmp_path, still_clock) as opened:
        await employ(opened, "w1", "w2", "w3")
        yield opened
