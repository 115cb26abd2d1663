"""A worker whose leased sync performer outlasts the stop: a thread can't be killed.

python -m tests.crash.overstay_app DATABASE NOTES
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

from kizami import Kizami, WorkerSettings


def make_app(database: Path, notes: Path) -> Kizami:
    settings = WorkerSettings(stop_ms=200, poll_ms=100, reap_ms=100)
    app = Kizami("overstay", database_url=f"sqlite:///{database}", settings=settings)

    @app.performer
    def hang() -> None:
        with notes.open("a", encoding="utf-8") as file:
            file.write("begun\n")
        threading.Event().wait()

    app.schedule("hang", hang, every=timedelta(seconds=1), lease="mirror")
    return app


async def _work(app: Kizami) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with app.running():
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(_work(make_app(Path(sys.argv[1]), Path(sys.argv[2]))))
