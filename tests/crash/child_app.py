"""A worker whose performer, by its name, runs in a child process and never returns.

python -m tests.crash.child_app PERFORMER DATABASE NOTES
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from kizami import Kizami
from tests.simulation import process_app


async def _work(name: str, database: Path, notes: Path) -> None:
    app = Kizami("parent", database_url=f"sqlite:///{database}")
    performer = app.performer(runs_in="process", timeout=timedelta(minutes=5))(getattr(process_app, name))
    async with app.running():
        await performer.enqueue(str(notes))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
