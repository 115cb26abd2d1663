"""Enqueues in a transaction of its own, says so, and ends it only when told to: `caller_app.py URL COMMITS`."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from typing import Any

import psycopg

from kizami import Kizami

url, commits = sys.argv[1:]
app = Kizami("caller", database_url=url)


@app.performer
def send(payload: dict[str, int]) -> None: ...


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> None:
    path = url.removeprefix("sqlite:///")
    connection: Any = psycopg.connect(url) if path == url else sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (number bigint)")
    say(await send.enqueue({"order": 1}, connection=connection))
    if commits == "yes":
        connection.commit()
        say("committed")
    sys.stdin.readline()


asyncio.run(main())
