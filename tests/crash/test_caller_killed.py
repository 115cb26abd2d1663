"""A process that is killed between its enqueue and its commit leaves no job; one killed after it leaves one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.store.postgres.migrate import migrate
from kizami.store.postgres.place import place_of

_PROGRAM = Path(__file__).with_name("caller_app.py")


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("commits", ["yes", "no"])
async def test_a_job_outlives_its_killed_caller_iff_it_had_committed(
    store: str, commits: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'kizami.db'}"
    if store == "postgres":
        url = request.getfixturevalue("postgres_url")
        migrate(place_of(url))
    app = Kizami("caller", database_url=url)
    async with app.running(worker=False):
        job_id = _enqueued_and_killed(url, commits)
        kept = await app.jobs.get(job_id)
        assert (kept is not None) is (commits == "yes")


def _enqueued_and_killed(url: str, commits: str) -> str:
    command = [sys.executable, str(_PROGRAM), url, commits]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        job_id = process.stdout.readline().strip()
        assert job_id.startswith("send#0:")
        if commits == "yes":
            assert process.stdout.readline() == "committed\n"
        process.kill()
    return job_id
