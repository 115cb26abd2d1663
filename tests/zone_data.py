"""Another edition of the time-zone database, as if the package that brings it had been updated."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
import tzdata

from kizami.core import zone
from kizami.store.rooms import schedule_rows

ZONE = "Asia/Gaza"
_read = pkgutil.get_data


@contextmanager
def zones_as_of(version: str, like: Mapping[str, str]) -> Iterator[None]:
    """While the body runs, the database is of this edition, and each zone has the rules of another one."""

    def read(package: str, resource: str) -> bytes | None:
        place, _, name = resource.partition("/")
        return _read(package, f"{place}/{like[name]}" if name in like else resource)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tzdata, "IANA_VERSION", version)
        patch.setattr(pkgutil, "get_data", read)
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    """Forget what a process reads once: an updated package comes with a new process."""
    for remembered in (zone._load, zone._tzinfo, schedule_rows._timing):  # noqa: SLF001 - what a new process lacks
        remembered.cache_clear()
