from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]  # fixtures that every ring may ask for

# Every run meets the same examples, so that a red test means a changed program. `HYPOTHESIS_PROFILE=explore` looks
# for new ones; what it finds becomes an @example.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,  # a busy machine is not a bug
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # as above
)
settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser that tests/browser drives: $KIZAMI_CHROMIUM, or the first one on the PATH."""
    names = (os.environ.get("KIZAMI_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, filter(None, names))), None)
    assert found is not None, "no Chromium found: run `make test`, or set KIZAMI_CHROMIUM to the path of one"
    return found
