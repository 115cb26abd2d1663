"""A process forked from one that has made its app, as preforking servers do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.crash.processes import ROOT

PROGRAM = """
import asyncio, json, os, sys
from kizami import Kizami

app = Kizami(database_url="sqlite:///" + sys.argv[1])
parent = app.runtime.process  # taken before the fork, as whoever looks at it may do
told, tell = os.pipe()

async def work():
    async with app.running():
        (row,) = await app.store.workers.list(app.name)
        os.write(tell, json.dumps([row.worker_id, row.process.pid, row.process.started]).encode())
        os._exit(9)  # no farewell

async def look():
    async with app.running(worker=False):
        (row,) = await app.store.workers.list(app.name)
        return app.runtime.is_gone(row.process)

child = os.fork()
if child == 0:
    asyncio.run(work())
os.waitpid(child, 0)
worker_id, pid, started = json.loads(os.read(told, 1000))
found = {"own": pid == child, "named": f"-{child}-" in worker_id, "started": bool(started)}
found |= {"seen gone": asyncio.run(look()), "parent the same": app.runtime.process == parent}
print(json.dumps(found))
"""


def test_a_forked_worker_is_known_by_its_own_process_and_seen_to_die(tmp_path: Path) -> None:
    """Not by its parent's, which lives on: the child's jobs would wait for their whole window."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "kizami.db")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found == dict.fromkeys(found, True)
    assert len(found) == 5
