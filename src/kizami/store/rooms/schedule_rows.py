"""Between schedule rows and the records of the protocol."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kizami.core.timing import Timing, fingerprint, from_json, to_json
from kizami.store.protocol import FireOutcome, FireRecord, Schedule, ScheduleDefinition, TickKind

if TYPE_CHECKING:
    from kizami.store.transaction import Row


@lru_cache(maxsize=4096)
def timing_of(text: str) -> Timing:
    """Return a stored timing."""
    return from_json(json.loads(text))


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
    }


def schedule(row: Row) -> Schedule:
    """Return a row as people see it."""
    return Schedule(
        name=row["name"],
        timing=timing_of(row["timing"]),
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
