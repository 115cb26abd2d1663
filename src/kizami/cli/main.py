"""The `kizami` command's way in; it works, and says what is missing, where the extra `cli` isn't installed."""

from __future__ import annotations

import sys
from typing import NoReturn

_CONFIGURATION = 3


def main() -> NoReturn:
    """Run the command that the arguments of this process name, and exit."""
    try:
        from kizami.cli.commands import execute  # noqa: PLC0415 - needs typer and rich
    except ModuleNotFoundError as error:
        sys.stderr.write(f"kizami: the command line needs {error.name}, which isn't installed. Install kizami[cli].\n")
        sys.exit(_CONFIGURATION)
    sys.exit(execute(sys.argv[1:]))
