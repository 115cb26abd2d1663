"""Which functions are async, which are sync, and which can be no performer at all."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kizami import JobContext, Kizami
from kizami.app.callables import is_async
from kizami.core.errors import DefinitionError


async def send(payload: int) -> int:
    return payload


def keep(payload: int) -> int:
    return payload


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


async def pages(payload: int) -> AsyncIterator[int]:
    yield payload


def lines(payload: int) -> Iterator[int]:
    yield payload


class Sender:
    async def __call__(self, payload: int) -> int:
        return payload

    async def bound(self, payload: int) -> int:
        return payload

    @staticmethod
    async def static(payload: int) -> int:
        return payload

    @classmethod
    async def of_class(cls, payload: int) -> int:
        return payload


class Keeper:
    def __call__(self, payload: int) -> int:
        return payload


class Liner:
    def __call__(self, payload: int) -> Iterator[int]:
        yield payload


ASYNC: dict[str, Callable[..., Any]] = {
    "coroutine function": send,
    "partial": functools.partial(send),
    "partial of a partial": functools.partial(functools.partial(send)),
    "object with async __call__": Sender(),
    "partial of such an object": functools.partial(Sender()),
    "bound method": Sender().bound,
    "static method": Sender.static,
    "static method before its class": staticmethod(send),
    "class method": Sender.of_class,
    "behind a sync decorator": logged(send),
    "behind two": logged(logged(send)),
}
SYNC: dict[str, Callable[..., Any]] = {
    "function": keep,
    "partial": functools.partial(keep),
    "object": Keeper(),
    "behind a decorator": logged(keep),
    "lambda": lambda payload: payload,
    "built-in": len,
    "a decorator that runs a generator": logged(lines),
}


@pytest.mark.parametrize("kind", ASYNC)
def test_an_async_performer_is_known_in_whatever_wrapping(kind: str) -> None:
    assert is_async(ASYNC[kind])
    performer = Kizami().performer(binding="send")(ASYNC[kind])
    assert performer.is_async
    assert performer.takes_payload


@pytest.mark.parametrize("kind", SYNC)
def test_a_sync_performer_is_not_taken_for_async(kind: str) -> None:
    assert not is_async(SYNC[kind])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (pages, "an async generator"),
        (lines, "a generator"),
        (functools.partial(lines), "a generator"),
        (Liner(), "a generator"),
        (classmethod(send), "a classmethod"),  # type: ignore[arg-type]  # the wrong value is the point
        (getattr, "parameters can't be read"),
        (lambda payload, /: payload, "positional-only"),
    ],
)
def test_what_can_not_perform_is_refused_by_name(function: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as refused:
        Kizami().performer(binding="wrong")(function)
    assert str(refused.value).startswith("Performer wrong")
    assert refused.value.remedy


def test_a_partial_keeps_the_types_and_the_context_of_its_function() -> None:
    def scale(factor: int, payload: int, ctx: JobContext) -> None: ...

    performer: Any = Kizami().performer(binding="scale")(functools.partial(scale, 3))
    assert not performer.is_async
    with pytest.raises(Exception, match="payload"):
        performer.job("not a number")


def test_a_decorator_that_wraps_itself_ends_nowhere() -> None:
    def odd() -> None: ...

    odd.__wrapped__ = odd  # type: ignore[attr-defined]  # as a broken decorator would
    assert not is_async(odd)
    assert not asyncio.iscoroutinefunction(odd)
