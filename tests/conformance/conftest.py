from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kizami.store.protocol import Store
from tests.conformance.postgres_home import clear, furnish, settle_in
from tests.conformance.whole_store import StillClock, employ, whole_store
from tests.postgres_server import fresh_database


@pytest.fixture(scope="session")
def postgres_home(postgres_server: str) -> Iterator[str]:
    """Give the URL of a furnished database that the tests of a run share, one after the other."""
    with fresh_database(postgres_server) as url:
        furnish(url)
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the folder of a database of each kind in turn; `whole_store` opens it."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_home")
        clear(url)
        settle_in(tmp_path, url)
    return tmp_path


@pytest.fixture
def still_clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def whole(home: Path, still_clock: StillClock) -> AsyncIterator[Store]:
    """Open a store on a real database, with the workers w1, w2 and w3."""
    async with whole_store(home, still_clock) as opened:
        await employ(opened, "w1", "w2", "w3")
        yield opened
