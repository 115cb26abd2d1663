"""Schedules whose stored timing can't be read any more."""

from __future__ import annotations

import json

from kizami.store.protocol import Store
from kizami.store.rooms.schedules import SQL, ScheduleRoom
from tests.conformance.planned import NAME
from tests.conformance.whole_store import APP

GONE = json.dumps({"kind": "cron", "expressions": ["* * * * *"], "time_zone": "Europe/Atlantis"})


async def damage(store: Store, timing: str = GONE, name: str = NAME, app: str = APP) -> None:
    """Store a timing as a damaged row or newer time-zone data would leave it."""
    assert isinstance(store.schedules, ScheduleRoom)
    facts = {"app": app, "name": name, "timing": timing, "timing_fingerprint": "of another time"}
    database = store.schedules._database  # noqa: SLF001 - no operation of the store leaves such a row
    await database.write(lambda transaction, _: transaction.execute(SQL["mend"], facts).rowcount)
