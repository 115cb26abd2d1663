"""What one process commits, another on the same file notices soon, without reading the file all the time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from kizami.runtime import SystemRuntime
from kizami.store.protocol import BindingDeclaration, NewJob
from kizami.store.sqlite.store import SqliteStore


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(file), SystemRuntime())
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_each_commit_of_another_connection_wakes_those_who_wait(tmp_path: Path) -> None:
    """Also the first after the log of the file was emptied, and one that only overwrites what the log has."""
    file = tmp_path / "kizami.db"
    woken = asyncio.Event()
    async with opened(file) as here, opened(file) as there:
        here.on_change(woken.set)
        for number, checkpoint in enumerate(("PASSIVE", "TRUNCATE", "RESTART", "PASSIVE")):
            woken.clear()
            await there.jobs.enqueue(
                [NewJob("app", "send", f"j{number}", "{}", declaration=BindingDeclaration("send"))]
            )
            async with asyncio.timeout(30):
                await woken.wait()
            with closing(sqlite3.connect(file)) as connection:
                connection.execute(f"PRAGMA wal_checkpoint({checkpoint})")
