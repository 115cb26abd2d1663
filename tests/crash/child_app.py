"""A worker whose performer runs in a child process and never returns.

python -m tests.crash.child_app DATABASE NOTES
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from kizami import Kizami
from tests.simulation.process_app import forever


async def _work(database: Path, notes: Path) -> None:
    app = Kizami("parent", database_url=f"sqlite:///{database}")
    performer = app.performer(runs_in="process", timeout=timedelta(minutes=5))(forever)
    async with app.running():
        await performer.enqueue(str(notes))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1]), Path(sys.argv[2])))
