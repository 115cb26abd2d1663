"""Wrong definitions: each raises at once, and its message names the object, the field and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from kizami import Backoff, Kizami, Performer, Tick, Window
from kizami.core.errors import DefinitionError


@dataclass
class Order:
    number: int


def made() -> tuple[Kizami, Performer[Order, None]]:
    app = Kizami()

    @app.performer
    def pack(payload: Order) -> None: ...

    return app, pack


def schedule(**changes: Any) -> Callable[[], object]:
    """Return the definition of a schedule that is right but for the changes."""

    def define() -> None:
        app, pack = made()
        right: dict[str, Any] = {"name": "nightly", "target": pack, "payload": Order(1), "cron": "0 3 * * *"}
        app.schedule(**(right | changes))

    return define


def performer(**options: Any) -> Callable[[], object]:
    def define() -> None:
        Kizami().performer(**options)(lambda: None)

    return define


def decorated(function: Callable[..., object]) -> Callable[[], object]:
    return lambda: Kizami().performer(function)


def twice(name: str) -> Callable[[], object]:
    def define() -> None:
        app, pack = made()
        app.schedule("nightly", pack, payload=Order(1), cron="0 3 * * *")
        if name == "schedule":
            app.schedule("nightly", pack, payload=Order(1), cron="0 4 * * *")
        else:
            app.performer(binding="pack")(lambda: None)

    return define


class Idle:
    """A class that does no jobs."""


class Needy:
    def __init__(self, argument: int) -> None: ...
    def perform(self) -> None: ...


def unreadable(payload: object) -> None: ...


unreadable.__annotations__["payload"] = "NoSuchType"


def unchecked(payload: Idle) -> None: ...


def crowded(first: int, second: int) -> None: ...


def by_name(*, tick: Tick) -> Order:
    del tick
    return Order(1)


def yielding(tick: Tick) -> Iterator[Order]:
    del tick
    yield Order(1)


def open_ended(*payloads: int) -> None: ...


WRONG = {
    "cron that is none": (schedule(cron="often"), ["Schedule nightly", "often", "five"]),
    "cron with a name": (schedule(cron="0 3 * * MON"), ["Schedule nightly", "MON"]),
    "cron that never matches": (schedule(cron="0 0 30 2 *"), ["Schedule nightly", "0 0 30 2 *"]),
    "no cron at all": (schedule(cron=()), ["Schedule nightly", "cron", "Give 1 to"]),
    "both cron and every": (schedule(every=timedelta(hours=1)), ["Schedule nightly", "both cron and every", "one"]),
    "neither": (schedule(cron=None), ["Schedule nightly", "neither cron nor every", "one"]),
    "every too short": (schedule(cron=None, every=timedelta(milliseconds=5)), ["Schedule nightly", "every", "second"]),
    "every not a length": (schedule(cron=None, every="1h"), ["Schedule nightly", "every", "timedelta"]),
    "zone with every": (
        schedule(cron=None, every=timedelta(hours=1), time_zone="Asia/Tokyo"),
        ["Schedule nightly", "time_zone with every", "cron only"],
    ),
    "fixed offset": (schedule(time_zone="+09:00"), ["Schedule nightly", "+09:00", "IANA", "fixed offsets"]),
    "unknown zone": (schedule(time_zone="Europe/Atlantis"), ["Schedule nightly", "Europe/Atlantis"]),
    "zone not a text": (schedule(time_zone=9), ["Schedule nightly", "9"]),
    "unknown option": (schedule(retries=3), ["Schedule nightly", "unknown option retries", "max_attempts"]),
    "option of enqueue": (schedule(delay=timedelta(1)), ["Schedule nightly", "delay", "Remove it"]),
    "unique key": (schedule(unique_key="k"), ["Schedule nightly", "unique_key", "Remove it"]),
    "option of a call": (schedule(connection=None), ["Schedule nightly", "connection", "is not an option"]),
    "key that is no text": (schedule(concurrency_key=2**63), ["Schedule nightly", "concurrency_key", "Give text"]),
    "overlap": (schedule(overlap="queue"), ["Schedule nightly", "overlap", "'skip' or 'overlap'"]),
    "driver": (schedule(driver="outer"), ["Schedule nightly", "driver", "'inner' or 'external'"]),
    "lease name": (schedule(lease="a lease"), ["Schedule nightly", "lease", "a lease", "ASCII"]),
    "payload of another type": (schedule(payload={"number": "x"}), ["Schedule nightly", "payload.number", "type"]),
    "payload missing": (schedule(payload=None), ["Schedule nightly", "payload", "type"]),
    "payload function without a tick": (schedule(payload=lambda: Order(1)), ["Schedule nightly", "the Tick"]),
    "payload function of two": (schedule(payload=lambda _, more: more), ["Schedule nightly", "the Tick", "defaults"]),
    "payload function by name only": (schedule(payload=by_name), ["Schedule nightly", "the Tick"]),
    "payload generator": (schedule(payload=yielding), ["Schedule nightly", "payload function", "generator"]),
    "payload function of no signature": (schedule(payload=min), ["Schedule nightly", "parameters", "Wrap it"]),
    "name too long": (schedule(name="n" * 65), ["Schedule", "n" * 65, "1 to 64"]),
    "name with a space": (schedule(name="at night"), ["Schedule", "at night", "ASCII"]),
    "schedule twice": (twice("schedule"), ["Schedule nightly", "twice", "another name"]),
    "binding twice": (twice("binding"), ["Binding pack", "twice", "another binding"]),
    "target": (schedule(target=print), ["Schedule nightly", "not a performer", "@app.performer", "flows"]),
    "window's end": (lambda: Window("08:00", "24:00"), ["Window end", "24:00", "23:59"]),
    "window not one": (schedule(window=("08:00", "21:00")), ["Schedule nightly", "window", "Window("]),
    "binding": (performer(binding="pack-it"), ["Binding", "pack-it", "identifier"]),
    "lambda's binding": (performer(), ["<lambda>", "identifier"]),
    "attempts": (performer(binding="pack", max_attempts=0), ["Performer pack", "max_attempts", "from 1"]),
    "priority": (performer(binding="pack", priority=2**31), ["Performer pack", "priority", "whole number"]),
    "timeout": (performer(binding="pack", timeout=60), ["Performer pack", "timeout", "timedelta"]),
    "guarantee": (performer(binding="pack", guarantee="exactly-once"), ["Performer pack", "guarantee", "at-most-once"]),
    "backoff": (performer(binding="pack", backoff=3), ["Performer pack", "backoff", "kizami.Backoff"]),
    "backoff's kind": (lambda: Backoff(kind="none"), ["Backoff kind", "none", "fixed"]),  # type: ignore[arg-type]  # the wrong value is the point
    "class without perform": (decorated(Idle), ["Performer Idle", "perform", "Add one"]),
    "class that needs arguments": (decorated(Needy), ["Performer Needy", "class Needy", "defaults"]),
    "annotations unreadable": (decorated(unreadable), ["Performer unreadable", "NoSuchType", "module level"]),
    "payload type unknown": (decorated(unchecked), ["Performer unchecked", "payload", "dataclass"]),
    "two payloads": (decorated(crowded), ["Performer crowded", "first, second", "one payload"]),
    "any number of payloads": (decorated(open_ended), ["Performer open_ended", "*payloads", "Name"]),
    "not a function": (lambda: Kizami().performer(7), ["Performer", "7", "function"]),  # type: ignore[call-overload]  # the wrong value is the point
    "app name": (lambda: Kizami("my app"), ["App", "my app", "ASCII"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_definition_says_what_is_wrong_where_and_what_to_do(case: str) -> None:
    define, words = WRONG[case]
    with pytest.raises(DefinitionError) as refused:
        define()
    assert refused.value.remedy
    assert [word for word in words if word not in str(refused.value)] == []


def test_a_refused_definition_leaves_nothing_behind() -> None:
    app, pack = made()
    with pytest.raises(DefinitionError):
        app.schedule("nightly", pack, payload=Order(1), cron="0 3 * * *", overlap="queue")
    app.schedule("nightly", pack, payload=Order(1), cron="0 3 * * *")
    assert [each.name for each in app.definitions] == ["nightly"]


def test_two_apps_in_one_process_share_nothing() -> None:
    (first, _), (second, _) = made(), made()
    assert first.performers["pack"] is not second.performers["pack"]


def test_the_schedule_decorator_without_parentheses_is_refused() -> None:
    """It would take the function for the name, and define nothing."""
    app = Kizami("shop")

    def report(tick: Tick) -> None: ...

    with pytest.raises(DefinitionError, match="for a name") as caught:
        app.scheduled(report)  # type: ignore[arg-type]  # the mistake
    assert "@app.scheduled(" in str(caught.value.remedy)
