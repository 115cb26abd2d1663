"""Which edition of an app's code is in force, and how the stored schedules come to follow it.

An edition is the code's schedules all together. Editions are numbered in the order in which they first ran, and the
newest one that a living worker runs is in force (docs/decisions/editions.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kizami.store.protocol import Editions, Moved, Registration, Superseded, edition_fingerprint
from kizami.store.rooms import plans
from kizami.store.rooms.schedule_rows import definition_values, readable
from kizami.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kizami.store.protocol import ScheduleDefinition
    from kizami.store.transaction import Moment, Row, Transaction

SQL: Final = load("editions")
SCHEDULES: Final = load("schedules")


@dataclass(frozen=True, slots=True)
class Registrant:
    """Who registers: a worker, or (None) a call from outside. Others that are silent for longer count as gone."""

    app: str
    worker_id: str | None
    silent_ms: int
    redefine: bool = False


def present(transaction: Transaction, moment: Moment, by: Registrant) -> Editions:
    """Return which edition is in force, and the newest that a living worker other than the registrant runs."""
    values = {
        "app": by.app,
        "worker_id": by.worker_id,
        "boot": moment.boot,
        "boot_id": moment.boot_id,
        "silent_ms": by.silent_ms,
    }
    row = transaction.execute(SQL["present"], values).fetchone()
    return Editions(row["in_force"] or 0, row["others"] or 0)


def register(
    transaction: Transaction, moment: Moment, by: Registrant, definitions: Sequence[ScheduleDefinition]
) -> Registration:
    """Put the registrant's edition in force unless another worker's has precedence; say how it stands.

    A call from outside leaves no worker behind that would keep the schedules going, so any worker has precedence. Nor
    is it known to be newer than what is stored, so it only adds names that were never stored, unless told otherwise.
    """
    transaction.execute(SCHEDULES["hold_app"], {"app": by.app})
    found = present(transaction, moment, by)
    if by.worker_id is None and found.others:
        return _standing(transaction, by.app, definitions, 0, found)
    if by.worker_id is None and not by.redefine:
        _add_unknown(transaction, moment, by.app, definitions)
        return _standing(transaction, by.app, definitions, 0, found)
    moved: tuple[Moved, ...] = ()
    edition = _number(transaction, moment, by.app, edition_fingerprint(definitions))
    seen = {"now": moment.now, "boot": moment.boot}
    transaction.execute(SQL["run"], seen | {"number": edition, "worker_id": by.worker_id})
    if edition >= found.others:
        moved = _follow(transaction, moment, by.app, definitions)
        transaction.execute(SQL["put_in_force"], {"app": by.app, "number": edition})
        found = Editions(edition, found.others)
    return replace(_standing(transaction, by.app, definitions, edition, found), moved=moved)


def _number(transaction: Transaction, moment: Moment, app: str, fingerprint: str) -> int:
    values = {"app": app, "fingerprint": fingerprint, "now": moment.now}
    found = transaction.execute(SQL["number"], values).fetchone()
    return int((found or transaction.execute(SQL["add"], values).fetchall()[0])["number"])


def _follow(
    transaction: Transaction, moment: Moment, app: str, definitions: Sequence[ScheduleDefinition]
) -> tuple[Moved, ...]:
    """Make the stored schedules equal to these; whatever changes gets a greater version. Return the moved plans."""
    moved: list[Moved] = []
    stored = {row["name"]: row for row in transaction.execute(SCHEDULES["stored"], {"app": app})}
    for definition in definitions:
        row = stored.pop(definition.name, None)
        if row is None:
            _add(transaction, moment, app, definition)
            continue
        if row["fingerprint"] != definition.fingerprint:
            plan = plans.new_plan(transaction, moment, row, definition)
            transaction.execute(SCHEDULES["redefine"], plan | definition_values(app, definition))
        else:
            if isinstance(readable(row), str):
                transaction.execute(SCHEDULES["mend"], definition_values(app, definition))
            if row["zone_data"] != definition.zone_data:
                moved.append(_replan(transaction, moment, row, definition))
            continue
        transaction.execute(SQL["remember"], {"app": app, "name": definition.name})
    for name, row in stored.items():
        if row["removed_at"] is None:
            plans.drop_passed(transaction, moment, row, "the schedule was removed before they were acted on")
            transaction.execute(SCHEDULES["remove"], {"app": app, "name": name, "now": moment.now})
            transaction.execute(SQL["remember"], {"app": app, "name": name})
    return tuple(moved)


def _replan(transaction: Transaction, moment: Moment, row: Row, definition: ScheduleDefinition) -> Moved:
    """Plan an unchanged schedule by this process's time-zone database; it keeps its version, for it means the same."""
    plan = plans.plan_by_other_zones(row, definition, moment)
    values = {"app": row["app"], "name": row["name"], "zone_data": definition.zone_data}
    transaction.execute(SCHEDULES["replan"], plan | values)
    return Moved(row["name"], definition.timing, row["planned_at"], plan["planned_at"], row["zone_data"])


def _add_unknown(transaction: Transaction, moment: Moment, app: str, definitions: Sequence[ScheduleDefinition]) -> None:
    """Add the schedules whose names were never stored; also one that was removed stays so."""
    stored = {row["name"] for row in transaction.execute(SCHEDULES["stored"], {"app": app})}
    for definition in definitions:
        if definition.name not in stored:
            _add(transaction, moment, app, definition)


def _add(transaction: Transaction, moment: Moment, app: str, definition: ScheduleDefinition) -> None:
    plan = plans.first_plan(moment, definition)
    transaction.execute(SCHEDULES["insert"], plan | definition_values(app, definition))
    transaction.execute(SQL["remember"], {"app": app, "name": definition.name})


def _standing(
    transaction: Transaction,
    app: str,
    definitions: Sequence[ScheduleDefinition],
    edition: int,
    editions: Editions,
) -> Registration:
    stored = {row["name"]: row for row in transaction.execute(SCHEDULES["stored"], {"app": app})}
    versions: dict[str, int] = {}
    superseded: list[Superseded] = []
    for definition in definitions:
        row = stored.get(definition.name)
        if row is not None and row["fingerprint"] == definition.fingerprint:
            if edition and row["zone_data"] != definition.zone_data:
                version = row["version"]
                other = Superseded(definition.name, version, version, removed=False, zone_data=row["zone_data"] or "")
                superseded.append(other)
            else:
                versions[definition.name] = row["version"]
        else:
            values = {"app": app, "schedule": definition.name, "fingerprint": definition.fingerprint}
            last = transaction.execute(SQL["last_version"], values).fetchone()
            present, removed = (0, False) if row is None else (row["version"], row["removed_at"] is not None)
            superseded.append(Superseded(definition.name, last["version"] if last else 0, present, removed=removed))
    return Registration(edition, editions, versions, tuple(superseded))
