"""Between schedule rows and the records of the protocol."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kizami.core.errors import KizamiError
from kizami.core.results import shorten_error
from kizami.core.timing import Timing, fingerprint, from_json, to_json
from kizami.store.protocol import FireOutcome, FireRecord, Schedule, ScheduleDefinition, TickKind
from kizami.store.protocol.schedules import broken_schedule

if TYPE_CHECKING:
    from kizami.store.transaction import Row


@lru_cache(maxsize=4096)
def _timing(text: str) -> Timing:
    return from_json(json.loads(text))


def readable(row: Row) -> Timing | str:
    """Return a row's timing, or why it can't be read: its zone left the database, or the row is damaged."""
    try:
        return _timing(row["timing"])
    except KizamiError as error:
        return error.message
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return f"The stored timing can't be read: {shorten_error(error)}"


def timing_of(row: Row) -> Timing:
    """Return a row's timing. Raises DefinitionError naming the schedule if it can't be read."""
    found = readable(row)
    if isinstance(found, str):
        raise broken_schedule(row["name"], found)
    return found


def definition_values(app: str, definition: ScheduleDefinition) -> dict[str, Any]:
    """Return what the statements `insert` and `redefine` need of a definition."""
    return {
        "app": app,
        "name": definition.name,
        "fingerprint": definition.fingerprint,
        "timing": json.dumps(to_json(definition.timing)),
        "timing_fingerprint": fingerprint(definition.timing),
        "binding": definition.binding,
        "overlap": definition.overlap,
        "driver": definition.driver,
        "lease": definition.lease,
        "description": definition.description,
        "zone_data": definition.zone_data,
    }


def schedule(row: Row) -> Schedule:
    """Return a row as people see it."""
    timing = readable(row)
    return Schedule(
        name=row["name"],
        timing=None if isinstance(timing, str) else timing,
        broken=timing if isinstance(timing, str) else None,
        binding=row["binding"],
        overlap=row["overlap"],
        driver=row["driver"],
        lease=row["lease"],
        version=row["version"],
        description=row["description"],
        anchor_at=row["anchor_at"],
        next_at=None if row["paused_at"] is not None else row["planned_at"],
        last_planned_at=row["last_planned_at"],
        last_fired_at=row["last_fired_at"],
        last_job_id=row["last_job_id"],
        fired_count=row["fired_count"],
        skipped_count=row["skipped_count"],
        skipped_at=row["skipped_at"],
        missed_count=row["missed_count"],
        failed_count=row["failed_count"],
        last_error=row["last_error"],
        last_error_at=row["last_error_at"],
        paused_at=row["paused_at"],
        registered_at=row["registered_at"],
        zone_data=row["zone_data"],
    )


def fire_record(row: Row) -> FireRecord:
    """Return a line of the ledger."""
    return FireRecord(
        schedule=row["schedule"],
        kind=TickKind(row["kind"]),
        outcome=FireOutcome(row["outcome"]),
        planned_at=row["planned_at"],
        planned_last_at=row["planned_last_at"],
        count=row["count"],
        acted_at=row["acted_at"],
        by=row["by"],
        job_id=row["job_id"],
        reason=row["reason"],
        version=row["version"],
    )
