"""What names and ids may look like, and how they are put together."""

from __future__ import annotations

import re
from typing import Final

from kizami.core.errors import DefinitionError, InvalidInputError

_SHOWN_MAX: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_BINDING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_TIMED: Final = re.compile(r"(?P<hex>[0-9a-f]{12})[0-9a-f]{16}|.*-(?P<planned>[0-9]{10,15})(-[0-9]+-manual)?", re.ASCII)
_JOB_ID: Final = re.compile(
    r"(?P<binding>[A-Za-z_][A-Za-z0-9_]*)#(?P<shard>0|[1-9][0-9]{0,5}):(?P<local>[A-Za-z0-9_.-]{1,200})", re.ASCII
)


def require_name(kind: str, value: object) -> str:
    """Return `value` if it is a name: 1 to 64 of A-Z a-z 0-9 _ -; else raise DefinitionError naming `kind`."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise DefinitionError(
        f"{kind} name {value!r} is not allowed.",
        remedy="Use 1 to 64 ASCII letters, digits, '_' or '-'.",
        kind=kind,
    )


def require_binding(value: object) -> str:
    """Return `value` if it is a binding: an ASCII identifier; else raise DefinitionError."""
    if isinstance(value, str) and _BINDING.fullmatch(value):
        return value
    raise DefinitionError(
        f"Binding {value!r} is not allowed.",
        remedy="Use an ASCII identifier: a letter or '_', then letters, digits or '_', 128 at most.",
    )


def job_id(binding: str, shard: int, local_id: str) -> str:
    """Return a job's public id, `<binding>#<shard>:<local id>`."""
    return f"{binding}#{shard}:{local_id}"


def split_job_id(value: str) -> tuple[str, int, str]:
    """Return binding, shard and local id of a public job id; raise InvalidInputError when it isn't one."""
    match = _JOB_ID.fullmatch(value)
    if match is None:
        raise InvalidInputError(
            f"{value[:_SHOWN_MAX]!r} is not a job id.",
            remedy="A job id reads <binding>#<shard>:<local id>; write the # as %23 in an address.",
            path="job_id",
        )
    return match["binding"], int(match["shard"]), match["local"]


def tick_local_id(schedule: str, scheduled_at_ms: int) -> str:
    """Return the local id of a planned fire: a pure function of the schedule and the planned instant."""
    return f"{schedule}-{scheduled_at_ms}"


def manual_local_id(schedule: str, scheduled_at_ms: int, sequence: int) -> str:
    """Return the local id of a manual fire; the sequence is per schedule and never reused."""
    return f"{schedule}-{scheduled_at_ms}-{sequence}-manual"


def time_of_local_id(local_id: str) -> int | None:
    """Return the epoch ms that a local id made by Kizami begins or ends with, None for any other."""
    match = _TIMED.fullmatch(local_id)
    if match is None:
        return None
    return int(match["hex"], 16) if match["hex"] else int(match["planned"])
