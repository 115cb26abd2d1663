"""What a command's exit code means; docs/commands.md shows this table."""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kizami.core.errors import KizamiError


class ExitCode(IntEnum):
    """Every exit code of `kizami`."""

    OK = 0
    FAILED = 1
    """The command worked and its answer is bad news: findings, a failed job, a tick whose payload was refused."""
    USAGE = 2
    """The command line, an input or a definition in code is wrong; also a tick at a time that isn't planned."""
    CONFIGURATION = 3
    STORE = 4
    REFUSED = 5
    """Not found, gone, in the wrong state, or held by somebody else."""
    SLACK = 6
    BUG = 70
    """An error that Kizami doesn't expect; the only one that shows a traceback."""


_BY_ERROR_CODE: Final[Mapping[str, ExitCode]] = MappingProxyType(
    {
        "invalid_definition": ExitCode.USAGE,
        "invalid_input": ExitCode.USAGE,
        "configuration": ExitCode.CONFIGURATION,
        "store_unavailable": ExitCode.STORE,
        "fire_refused": ExitCode.FAILED,
        "not_found": ExitCode.REFUSED,
        "wrong_state": ExitCode.REFUSED,
        "gone": ExitCode.REFUSED,
        "sync_in_progress": ExitCode.REFUSED,
        "board_not_shown": ExitCode.SLACK,
        "slack": ExitCode.SLACK,
        "kizami_error": ExitCode.FAILED,
    }
)


def exit_code_of(error: KizamiError) -> ExitCode:
    """Return the exit code of an error: that of the nearest of its kinds which has one."""
    codes = (getattr(kind, "code", "") for kind in type(error).__mro__)
    return next(_BY_ERROR_CODE[code] for code in codes if code in _BY_ERROR_CODE)
