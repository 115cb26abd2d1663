"""A store in memory on the caller's thread, so that a model can be walked beside it without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from kizami.store.sqlite.store import SqliteStore
from tests.conformance.whole_store import StillClock, StillWorld, process

T = TypeVar("T")


def done(operation: Coroutine[Any, Any, T]) -> T:
    """Return what an operation answers; in memory it never has to wait."""
    try:
        operation.send(None)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    raise AssertionError("the operation waited")


def still_store(clock: StillClock) -> SqliteStore:
    store = SqliteStore(":memory:", StillWorld(clock, process()))
    done(store.open())
    return store
