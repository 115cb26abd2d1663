"""Intents in SQLite: what was about to be posted, kept inside the transactions of deliveries and boards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kizami.store.protocol.deliveries import Intent
from kizami.store.sqlite.statements import load

if TYPE_CHECKING:
    import sqlite3

    from kizami.store.protocol.leases import LeaseFence
    from kizami.store.sqlite.database import Moment

Facts = dict[str, Any]
_SQL = load("intents")


def fenced(app: str, fence: LeaseFence | None, moment: Moment, **facts: object) -> Facts:
    """Return the parameters that every fenced write takes: its own facts, the time and the lease it depends on."""
    lease = {"lease": fence.name, "run_id": fence.run_id} if fence else {"lease": None, "run_id": None}
    return {"app": app, **lease, "now": moment.now, "boot": moment.boot, "boot_id": moment.boot_id, **facts}


def record(connection: sqlite3.Connection, facts: Facts, attempt: int) -> Intent:
    """Commit that a post is about to be tried."""
    connection.execute(_SQL["record"], {**facts, "attempt": attempt})
    return Intent(attempt, facts["channel"], facts["now"], facts["slack_at"])


def unsettled(connection: sqlite3.Connection, facts: Facts) -> tuple[Intent, ...]:
    """Return the intents whose outcome is unknown, oldest first."""
    return tuple(Intent(*row) for row in connection.execute(_SQL["unsettled"], facts))


def settle(connection: sqlite3.Connection, facts: Facts, attempt: int, note: str) -> bool:
    """Settle one intent; False when it was settled before."""
    return connection.execute(_SQL["settle"], {**facts, "attempt": attempt, "note": note}).rowcount == 1


def settle_all(connection: sqlite3.Connection, facts: Facts, note: str) -> None:
    """Settle every intent: the message is known."""
    connection.execute(_SQL["settle_all"], {**facts, "note": note})
