"""Checks the shape of JSON and says, in Slack's wording and with a JSON pointer, what is wrong where."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Check = Callable[[object, str, list[str]], None]
"""Takes a value and its JSON pointer; appends one line per fault to the list."""


def fault(what: str, at: str) -> str:
    """Return one line of `response_metadata.messages`, without its [ERROR]."""
    return f"{what} [json-pointer:{at}]"


def string(most: int, *, measure: Callable[[str], int] = len) -> Check:
    """Return a check for a string that is not empty and has at most `most` characters."""

    def check(value: object, at: str, faults: list[str]) -> None:
        if not isinstance(value, str):
            faults.append(fault("must provide a string", at))
        elif not value:
            faults.append(fault("must be more than 0 characters", at))
        elif measure(value) > most:
            faults.append(fault(f"must be less than {most + 1} characters", at))

    return check


def boolean(value: object, at: str, faults: list[str]) -> None:
    """Check for true or false."""
    if not isinstance(value, bool):
        faults.append(fault("must provide a boolean", at))


def number(value: object, at: str, faults: list[str]) -> None:
    """Check for a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.append(fault("must provide a number", at))


def one_of(*allowed: str) -> Check:
    """Return a check for one of some words."""

    def check(value: object, at: str, faults: list[str]) -> None:
        if value not in allowed:
            faults.append(fault(f"must be one of: {', '.join(allowed)}", at))

    return check


def array(item: Check, most: int, *, least: int = 1) -> Check:
    """Return a check for `least` to `most` items, each of which `item` passes."""

    def check(value: object, at: str, faults: list[str]) -> None:
        if not isinstance(value, list):
            faults.append(fault("must provide an array", at))
        elif len(value) > most:
            faults.append(fault(f"no more than {most} items allowed", at))
        elif len(value) < least:
            faults.append(fault(f"no less than {least} items allowed", at))
        else:
            for index, entry in enumerate(value):
                item(entry, f"{at}/{index}", faults)

    return check


def record(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check for an object with these fields and no others; `type` is taken for granted."""
    fields = {**required, **(optional or {})}

    def check(value: object, at: str, faults: list[str]) -> None:
        if not isinstance(value, dict):
            faults.append(fault("must provide an object", at))
            return
        faults += [fault(f"missing required field: {name}", at) for name in required if name not in value]
        for name, entry in value.items():
            if name in fields:
                fields[name](entry, f"{at}/{name}", faults)
            elif name != "type":
                faults.append(fault(f"invalid additional property: {name[:80]}", at))

    return check


def by_type(kinds: Mapping[str, Check]) -> Check:
    """Return a check that picks another one by the value's `type`."""

    def check(value: object, at: str, faults: list[str]) -> None:
        if not isinstance(value, dict):
            faults.append(fault("must provide an object", at))
        elif not isinstance(kind := value.get("type"), str):
            faults.append(fault("missing required field: type", at))
        elif kind not in kinds:
            faults.append(fault(f"unsupported type: {kind[:80]}", f"{at}/type"))
        else:
            kinds[kind](value, at, faults)

    return check


def or_null(check: Check) -> Check:
    """Return a check that lets null pass too."""

    def lenient(value: object, at: str, faults: list[str]) -> None:
        if value is not None:
            check(value, at, faults)

    return lenient
