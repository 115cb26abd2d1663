"""A worker on a user's table that stops in a phase of a post until it is killed.

python -m tests.crash.user_table_app DATABASE TABLE_URL PHASE
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from kizami import Kizami, WorkerSettings
from kizami.slack import Slack, UserTable

CHANNEL = "C0ALERTS"
SETTINGS = WorkerSettings(reap_ms=200, vouch_ms=500)


def make_app(database: str, table_url: str, phase: str) -> Kizami:
    """Return an app that delivers twice a second; in the phase it says so and waits for ever."""
    app = Kizami("killed", database_url=f"sqlite:///{database}", settings=SETTINGS)
    slack = Slack()
    orders = UserTable(
        slack,
        table_url,
        table="orders",
        marker="slack_ts",
        channel=CHANNEL,
        columns=["name"],
        claim_token="claim_token",  # noqa: S106 - the name of a column
        claim_expires="claim_expires",
        history_lag=timedelta(milliseconds=100),
    )
    app.at_start(orders.check)

    async def stop_in(reached: str, _item: str) -> None:
        if reached == phase:
            sys.stdout.write(f"{phase}\n")
            sys.stdout.flush()
            await asyncio.get_running_loop().create_future()

    slack.on_phase = stop_in

    @app.scheduled("orders", every=timedelta(seconds=1), max_attempts=100)
    async def sync() -> int:
        return (await orders.deliver()).delivered

    return app


async def _work(database: str, table_url: str, phase: str) -> None:
    async with make_app(database, table_url, phase).running():
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:4]))
