"""Optional packages that a command needs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kizami.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages in the body. Raises ConfigurationError with the extra to install when one is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f"Install kizami[{extra}]."
        raise ConfigurationError(f"{what} needs {error.name}, which isn't installed.", remedy=remedy) from error
