"""Schedules: definitions that follow the code, the plan, pause and resume, and what people ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kizami.core.errors import NotFoundError
from kizami.core.names import job_id
from kizami.core.states import OUTSTANDING
from kizami.store.protocol import DuePage, DueSchedule
from kizami.store.protocol.schedules import SILENT_MS
from kizami.store.protocol.store import Topic
from kizami.store.rooms import editions, fires, plans
from kizami.store.rooms.schedule_rows import fire_record, readable, schedule
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.core.times import EpochMs
    from kizami.store.protocol import Editions, Fire, FireRecord, Registration, Schedule, ScheduleDefinition
    from kizami.store.transaction import Database, Moment, Row, Transaction

SQL: Final = load("schedules")


class ScheduleRoom:
    """Operations on schedules, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(
        self,
        app: str,
        definitions: Sequence[ScheduleDefinition],
        *,
        worker_id: str | None = None,
        silent_ms: int = SILENT_MS,
        redefine: bool = False,
    ) -> Registration:
        """Make the stored schedules equal to the code's unless a living worker runs a newer edition of it."""
        by = editions.Registrant(app, worker_id, silent_ms, redefine=redefine)
        registration = await self._database.write(
            lambda transaction, moment: editions.register(transaction, moment, by, definitions),
        )
        self._database.announce(Topic.OTHER)
        return registration

    async def editions(self, app: str, *, besides: str | None = None, silent_ms: int = SILENT_MS) -> Editions:
        """Return which edition is in force, and the newest that another living worker runs."""
        by = editions.Registrant(app, besides, silent_ms)
        return await self._database.read(lambda transaction, moment: editions.present(transaction, moment, by))

    async def due(self, app: str, versions: dict[str, int], limit: int) -> DuePage:
        """Return the schedules that are due by these versions."""
        return await self._database.read(lambda transaction, moment: _due(transaction, moment, app, versions, limit))

    async def fire(self, wanted: Sequence[Fire]) -> tuple[FireRecord, ...]:
        """Settle ticks: job, ledger row and new plan in one transaction."""
        records = await self._database.write(
            lambda transaction, moment: fires.settle_all(transaction, moment, wanted),
        )
        self._database.announce(Topic.OTHER)
        return records

    async def now(self) -> EpochMs:
        """Return the store's wall clock."""
        return await self._database.now()

    async def pause(self, app: str, name: str) -> Schedule:
        """Stop firing."""

        def operation(transaction: Transaction, moment: Moment) -> Schedule:
            transaction.execute(SQL["pause"], {"app": app, "name": name, "now": moment.now})
            return schedule(one(transaction, app, name))

        return await self._database.write(operation)

    async def resume(self, app: str, name: str) -> Schedule:
        """Fire again from the first boundary strictly after now."""
        resumed = await self._database.write(lambda transaction, moment: _resume(transaction, moment, app, name))
        self._database.announce(Topic.OTHER)
        return resumed

    async def get(self, app: str, name: str) -> Schedule | None:
        """Return one schedule."""

        def operation(transaction: Transaction, _: Moment) -> Schedule | None:
            row = transaction.execute(SQL["one"], {"app": app, "name": name}).fetchone()
            return None if row is None else schedule(row)

        return await self._database.read(operation)

    async def list(self, app: str) -> tuple[Schedule, ...]:
        """Return the schedules of an app by name."""
        return await self._database.look(
            lambda transaction, _: tuple(schedule(row) for row in transaction.execute(SQL["listed"], {"app": app})),
        )

    async def ledger(self, app: str, name: str | None, limit: int) -> tuple[FireRecord, ...]:
        """Return the newest lines of the fire ledger."""
        statement = SQL["ledger" if name is None else "ledger_of_schedule"]
        values = {"app": app, "schedule": name, "limit": limit}
        return await self._database.look(
            lambda transaction, _: tuple(fire_record(row) for row in transaction.execute(statement, values)),
        )


def one(transaction: Transaction, app: str, name: str, statement: str = "one") -> Row:
    """Return a schedule's row, with "held" kept from others until the end. Raises NotFoundError."""
    row: Row | None = transaction.execute(SQL[statement], {"app": app, "name": name}).fetchone()
    if row is None:
        raise NotFoundError(
            f"There is no schedule {name} in app {app}.",
            remedy="`kizami schedules list MODULE:APP` lists them; a new one is stored when a worker starts.",
            schedule=name,
        )
    return row


def _due(transaction: Transaction, moment: Moment, app: str, versions: dict[str, int], limit: int) -> DuePage:
    found: list[DueSchedule] = []
    broken: dict[str, str] = {}
    for row in transaction.execute(SQL["due"], {"app": app, "now": moment.now}):
        timing = readable(row)
        if isinstance(timing, str):
            broken[row["name"]] = timing
        elif versions.get(row["name"]) == row["version"]:
            found.append(DueSchedule(row["name"], row["version"], row["planned_at"], _outstanding(row)))
            if len(found) == limit:
                break
    row = transaction.execute(SQL["next_planned"], {"app": app, "now": moment.now}).fetchone()
    return DuePage(moment.now, tuple(found), row["planned_at"] if row else None, broken)


def _outstanding(row: Row) -> str | None:
    return job_id(row["binding"], row["shard"], row["local_id"]) if row["state"] in OUTSTANDING else None


def _resume(transaction: Transaction, moment: Moment, app: str, name: str) -> Schedule:
    row = one(transaction, app, name, "held")
    if row["paused_at"] is not None:
        values = {"app": app, "name": name, "next_at": plans.plan_after_pause(transaction, moment, row)}
        transaction.execute(SQL["resume"], values)
    return schedule(one(transaction, app, name))
